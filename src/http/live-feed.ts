import { setImmediate as nextTurn } from 'node:timers/promises';
import { TaskledgerError } from '../domain/errors.ts';
import type { EventLog, LogBatch, LogReader, ReaderOptions } from '../log/event-log.ts';
import type { Logger } from '../observe/log.ts';
import { eventMessage } from './event-feed.ts';
import { FeedPlace } from './feed-place.ts';

export interface LiveFeedParts {
  readonly log: Pick<EventLog, 'bounds'>;
  readonly readLog: (options: ReaderOptions) => LogReader;
  readonly logger: Logger;
  /** Most bytes of messages that wait for one client. */
  readonly bufferBytes: number;
}

export interface Entry {
  readonly place: FeedPlace;
  /** Asked for, and aged out of the log. */
  readonly gap: { readonly from: number; readonly to: number } | undefined;
}

const LIVE_BATCH = 64;
/** Told in one turn of the event loop, about. */
const TURN_BYTES = 65_536;
const PAST_BATCH = 500;
/** Clients that read their past at a time: each has a reader of its own. */
const MAX_PAST = 100;

/** The present of the log for all clients of a process, read once. The shared reader runs while somebody is there. */
export class LiveFeed {
  readonly bufferBytes: number;
  readonly #parts: LiveFeedParts;
  readonly #following = new Set<FeedPlace>();
  /** Those that have entered, or are about to. */
  #inside = 0;
  #readersOfPast = 0;
  #position = 0;
  #reader: Promise<LogReader> | undefined;
  /** The one whose batches are told. */
  #current: LogReader | undefined;
  readonly #ending = new Set<Promise<void>>();

  constructor(parts: LiveFeedParts) {
    this.#parts = parts;
    this.bufferBytes = parts.bufferBytes;
  }

  /** A place after `since`, or after what is stored now. Whoever has one leaves it. */
  async enter(since: number | undefined): Promise<Entry> {
    this.#inside += 1;
    try {
      const { firstSeq, lastSeq } = await this.#parts.log.bounds();
      this.#reader ??= this.#begin(lastSeq);
      await this.#reader;
      const after = since ?? Math.max(lastSeq, this.#position);
      if (after < this.#position && this.#readersOfPast >= MAX_PAST)
        throw new TaskledgerError('rate_limited');
      return {
        place: new FeedPlace(this, after),
        gap: after + 1 < firstSeq ? { from: after + 1, to: firstSeq - 1 } : undefined,
      };
    } catch (error) {
      this.leave();
      throw error;
    }
  }

  leave(place?: FeedPlace): void {
    if (place !== undefined) this.#following.delete(place);
    this.#inside -= 1;
    if (this.#inside > 0) return;
    const reader = this.#reader;
    this.#reader = undefined;
    if (reader !== undefined) this.#end(reader);
  }

  /** Every event up to here has been told to those who follow. */
  position(): number {
    return this.#position;
  }

  add(place: FeedPlace): void {
    this.#following.add(place);
  }

  readPast(fromSeq: number, onBatch: ReaderOptions['onBatch']): LogReader {
    this.#readersOfPast += 1;
    return this.#parts.readLog({ fromSeq, onBatch, maxBatch: PAST_BATCH, gatherMs: 0 });
  }

  endPast(reader: LogReader): void {
    this.#readersOfPast -= 1;
    this.#end(Promise.resolve(reader));
  }

  /** When the readers that nobody needs any more have stopped. */
  async whenEnded(): Promise<void> {
    await Promise.all(this.#ending);
  }

  async #begin(lastSeq: number): Promise<LogReader> {
    this.#position = lastSeq;
    const reader: LogReader = this.#parts.readLog({
      fromSeq: lastSeq + 1,
      maxBatch: LIVE_BATCH,
      gatherMs: 0,
      // A reader that nobody needed any more may still be telling a batch when the next one has begun.
      onBatch: (batch) => this.#tell(batch, () => reader === this.#current),
    });
    this.#current = reader;
    await reader.start();
    return reader;
  }

  /** Sockets take what was written when this gives way, so that a client is not slow because much came at once. */
  async #tell({ events, lastSeq }: LogBatch, isCurrent: () => boolean): Promise<void> {
    let bytes = 0;
    for (const recorded of events) {
      if (!isCurrent()) return;
      let made: string | undefined;
      const message = (): string => {
        made ??= eventMessage(recorded);
        return made;
      };
      for (const place of this.#following) place.hear(recorded, message);
      this.#position = recorded.seq;
      bytes += made?.length ?? 0;
      if (bytes < TURN_BYTES) continue;
      bytes = 0;
      await nextTurn();
    }
    if (isCurrent()) this.#position = lastSeq;
    await nextTurn();
  }

  #end(reader: Promise<LogReader>): void {
    const ending = reader
      .then((started) => started.stop())
      .catch((error: unknown) => this.#parts.logger.warn({ error: String(error) }, 'a feed ended'))
      .finally(() => this.#ending.delete(ending));
    this.#ending.add(ending);
  }
}
