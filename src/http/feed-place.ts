import type { Recorded } from '../domain/events.ts';
import type { LogBatch, LogReader } from '../log/event-log.ts';
import { eventMatches, eventMessage, type FeedFilter } from './event-feed.ts';
import type { LiveFeed } from './live-feed.ts';

/** Who is told of events: one connection. */
export interface FeedClient {
  readonly filter: FeedFilter;
  /** Of the present. Ends the client instead when too much waits for it. */
  write(message: string): void;
  /** Of the past: resolves when there is room for more; false when the client has ended. */
  writeAndWait(messages: string): Promise<boolean>;
  end(reason: EndReason): void;
}
export type EndReason = 'slow' | 'shutting_down' | 'log_unavailable';

/** A client that reads its past hears the present as well from so near on, and holds it back until the two meet. */
const NEAR_EVENTS = 2_000;

/**
 * A client's place in the feed: past -> joining -> live, or live from the beginning.
 *
 * Past: a reader of its own, no faster than its client takes it. Joining: the present is held back as well, since the
 * position that the shared reader had then. Live: the past has reached that position, so what is held follows it without
 * a gap; what the past told itself is left out of it.
 */
export class FeedPlace {
  readonly #feed: LiveFeed;
  #client: FeedClient | undefined;
  /** Everything up to here was told to the client by its own reader, or before it came. */
  #after: number;
  #past: LogReader | undefined;
  #joining: { readonly at: number; bytes: number; readonly held: Held[] } | undefined;
  #left = false;

  constructor(feed: LiveFeed, after: number) {
    this.#feed = feed;
    this.#after = after;
  }

  /** Tells `client` every event that its filter lets through, once and in order. */
  follow(client: FeedClient): void {
    this.#client = client;
    if (this.#after >= this.#feed.position()) {
      this.#feed.add(this);
      return;
    }
    this.#past = this.#feed.readPast(this.#after + 1, (batch) => this.#tellPast(client, batch));
    this.#past.start().catch(() => client.end('log_unavailable'));
  }

  /** Everything up to here was told to the client, or is not for it. */
  reached(): number {
    return this.#past === undefined ? Math.max(this.#after, this.#feed.position()) : this.#after;
  }

  leave(): void {
    if (this.#left) return;
    this.#left = true;
    this.#endPast();
    this.#feed.leave(this);
  }

  /** Of the present, by the shared reader; `message` is made once for all places. */
  hear({ seq, event }: Recorded, message: () => string): void {
    const client = this.#client;
    if (client === undefined || this.#left || seq <= this.#after) return;
    if (!eventMatches(event, client.filter)) return;
    if (this.#joining === undefined) {
      client.write(message());
      return;
    }
    this.#joining.bytes += Buffer.byteLength(message());
    this.#joining.held.push({ seq, message: message() });
    if (this.#joining.bytes > this.#feed.bufferBytes) client.end('slow');
  }

  async #tellPast(client: FeedClient, { events, lastSeq }: LogBatch): Promise<void> {
    if (this.#past === undefined) return;
    const messages = events
      .filter(({ event }) => eventMatches(event, client.filter))
      .map(eventMessage)
      .join('');
    this.#after = lastSeq;
    if (messages !== '' && !(await client.writeAndWait(messages))) return;
    if (this.#left) return;
    const position = this.#feed.position();
    if (this.#joining === undefined && position - lastSeq <= NEAR_EVENTS) {
      this.#joining = { at: position, bytes: 0, held: [] };
      this.#feed.add(this);
    }
    if (this.#joining !== undefined && lastSeq >= this.#joining.at) this.#goLive(client, this.#joining.held);
  }

  #goLive(client: FeedClient, held: readonly Held[]): void {
    this.#joining = undefined;
    this.#endPast();
    for (const { seq, message } of held) if (seq > this.#after) client.write(message);
  }

  /** Not awaited: a reader ends when its batch has been dealt with, and this may be called while that is done. */
  #endPast(): void {
    const past = this.#past;
    this.#past = undefined;
    if (past !== undefined) this.#feed.endPast(past);
  }
}

interface Held {
  readonly seq: number;
  readonly message: string;
}
