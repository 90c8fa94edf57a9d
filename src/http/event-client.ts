import type { ServerResponse } from 'node:http';
import type { FeedFilter } from './event-feed.ts';
import type { EndReason, FeedClient, FeedPlace } from './feed-place.ts';

const HEARTBEAT_MS = 15_000;
/** A client that reads its past and takes nothing for so long is dropped. */
const SLOW_MS = 10_000;
/** How long the last message may take to go out before the connection is cut. */
const LAST_WORD_MS = { slow: 10_000, shutting_down: 1_000, log_unavailable: 1_000 } as const;

export interface EventClientOptions {
  readonly raw: ServerResponse;
  readonly filter: FeedFilter;
  readonly place: FeedPlace;
  /** Most bytes that may wait for it. */
  readonly bufferBytes: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** One connection of `GET /v1/events`. It ends by itself when the client goes, does not keep up, or is told to. */
export class EventClient implements FeedClient {
  readonly filter: FeedFilter;
  /** Resolves when the connection is gone. */
  readonly closed: Promise<void>;
  readonly #raw: ServerResponse;
  readonly #place: FeedPlace;
  readonly #bufferBytes: number;
  readonly #stopped = new AbortController();
  #heartbeat: NodeJS.Timeout | undefined;

  constructor({ raw, filter, place, bufferBytes, headers }: EventClientOptions) {
    this.filter = filter;
    this.#raw = raw;
    this.#place = place;
    this.#bufferBytes = bufferBytes;
    this.closed = new Promise((resolve) => {
      // It may have gone while its place was made.
      if (raw.destroyed) resolve();
      else raw.once('close', resolve);
    });
    void this.closed.then(() => this.#leave());
    raw.writeHead(200, {
      ...headers,
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
      connection: 'close',
    });
  }

  follow(gap: { readonly from: number; readonly to: number } | undefined): void {
    this.#comment('following');
    if (gap !== undefined) this.#raw.write(`event: gap\ndata: ${JSON.stringify(gap)}\n\n`);
    this.#heartbeat = setInterval(() => this.#comment('still here'), HEARTBEAT_MS);
    this.#place.follow(this);
  }

  write(message: string): void {
    if (this.#stopped.signal.aborted) return;
    if (this.#raw.writableLength > this.#bufferBytes) this.end('slow');
    else this.#raw.write(message);
  }

  async writeAndWait(messages: string): Promise<boolean> {
    const { signal } = this.#stopped;
    if (signal.aborted) return false;
    if (this.#raw.write(messages)) return true;
    const taken = await whenDrained(this.#raw, signal);
    if (!taken) this.end('slow');
    return taken;
  }

  /** The client hears why. Told twice to go, it goes at once. */
  end(reason: EndReason): void {
    const raw = this.#raw;
    if (this.#stopped.signal.aborted) {
      if (reason === 'shutting_down') raw.destroy();
      return;
    }
    this.#leave();
    raw.end(`event: end\ndata: ${JSON.stringify({ reason })}\n\n`);
    const cut = setTimeout(() => raw.destroy(), LAST_WORD_MS[reason]);
    void this.closed.then(() => clearTimeout(cut));
  }

  /** With the position, so that a client whose filter lets little through does not go back to its last event. */
  #comment(text: string): void {
    this.#raw.write(`: ${text}\nid: ${this.#place.reached()}\n\n`);
  }

  #leave(): void {
    this.#stopped.abort();
    clearInterval(this.#heartbeat);
    this.#place.leave();
  }
}

/** False when it took nothing for SLOW_MS, or has ended. */
function whenDrained(raw: ServerResponse, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const done = (taken: boolean): void => {
      clearTimeout(timer);
      raw.off('drain', drained);
      signal.removeEventListener('abort', aborted);
      resolve(taken);
    };
    const drained = (): void => done(true);
    const aborted = (): void => done(false);
    const timer = setTimeout(() => done(false), SLOW_MS);
    raw.on('drain', drained);
    signal.addEventListener('abort', aborted);
  });
}
