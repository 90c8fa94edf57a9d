import type { Recorded, TaskEvent } from '../../src/domain/events.ts';
import type { LogBatch } from '../../src/log/event-log.ts';
import { Nap } from '../../src/platform/nap.ts';

/** Events wait here for the next transaction. */
export interface InboxLimits {
  /** Most events in one transaction. */
  readonly maxEvents: number;
  /** Most bytes, roughly, of events in one transaction. */
  readonly maxBytes: number;
}

/**
 * Between the log's reader, which offers, and the projector's loop, which takes. Holds about two transactions' worth;
 * then the reader waits. After `close`, offers are dropped and takers get nothing: the events are read again.
 */
export class Inbox {
  readonly #limits: InboxLimits;
  #events: Recorded[] = [];
  #bytes: number[] = [];
  #totalBytes = 0;
  #unreadable: LogBatch['unreadable'][number][] = [];
  #lastSeq = 0;
  #takenTo = 0;
  #closed = false;
  readonly #untilOffer = new Nap();
  readonly #untilRoom = new Nap();

  constructor(limits: InboxLimits) {
    this.#limits = limits;
  }

  /** Resolves when there is room for more. */
  async offer(batch: LogBatch): Promise<void> {
    if (this.#closed) return;
    for (const recorded of batch.events) {
      const bytes = roughBytes(recorded.event);
      this.#events.push(recorded);
      this.#bytes.push(bytes);
      this.#totalBytes += bytes;
    }
    this.#unreadable.push(...batch.unreadable);
    this.#lastSeq = batch.lastSeq;
    this.#untilOffer.wake();
    while (this.#isCrowded()) await this.#untilRoom.take();
  }

  /**
   * The next batch, or undefined once closed. Waits for a first event; then, unless a transaction is full, until
   * `notBefore` (performance.now()) or `settleMs` after that event, whichever is later, so that events gather.
   */
  async next({
    notBefore,
    settleMs,
  }: {
    notBefore: number;
    settleMs: number;
  }): Promise<LogBatch | undefined> {
    while (!this.#closed && this.#lastSeq === this.#takenTo) await this.#untilOffer.take();
    const deadline = Math.max(notBefore, performance.now() + settleMs);
    while (!this.#closed && !this.#isFull()) {
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) break;
      await this.#untilOffer.take(leftMs);
    }
    return this.#closed ? undefined : this.#take();
  }

  close(): void {
    this.#closed = true;
    this.#untilOffer.wake();
    this.#untilRoom.wake();
  }

  #take(): LogBatch {
    const count = this.#fitting();
    const all = count === this.#events.length;
    const events = this.#events.splice(0, count);
    for (const bytes of this.#bytes.splice(0, count)) this.#totalBytes -= bytes;
    const lastSeq = all ? this.#lastSeq : (events.at(-1)?.seq ?? this.#lastSeq);
    const unreadable = this.#unreadable.filter(({ seq }) => seq <= lastSeq);
    this.#unreadable = this.#unreadable.filter(({ seq }) => seq > lastSeq);
    this.#takenTo = lastSeq;
    this.#untilRoom.wake();
    return { events, unreadable, lastSeq };
  }

  /** How many of the events go into one transaction: at least one. */
  #fitting(): number {
    const { maxEvents, maxBytes } = this.#limits;
    const most = Math.min(maxEvents, this.#events.length);
    if (this.#totalBytes <= maxBytes) return most;
    let bytes = 0;
    for (let count = 0; count < most; count++) {
      bytes += this.#bytes[count] ?? 0;
      if (bytes > maxBytes) return Math.max(1, count);
    }
    return most;
  }

  #isFull(): boolean {
    return this.#events.length >= this.#limits.maxEvents || this.#totalBytes >= this.#limits.maxBytes;
  }

  #isCrowded(): boolean {
    const { maxEvents, maxBytes } = this.#limits;
    return !this.#closed && (this.#events.length >= 2 * maxEvents || this.#totalBytes >= 2 * maxBytes);
  }
}

/** Envelope of an event, in bytes: nearly constant. */
const ENVELOPE_BYTES = 400;

/** Deeper is not measured: nothing that was let in is so deep, and the stack is finite. */
const MAX_DEPTH = 100;

/** Good enough to bound memory and statements; much cheaper than serialising. */
const roughBytes = (event: TaskEvent): number => ENVELOPE_BYTES + roughSize(event.data, 0);

function roughSize(value: unknown, depth: number): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null || depth > MAX_DEPTH) return 8;
  let size = 2;
  for (const key in value)
    size += key.length + 4 + roughSize((value as Record<string, unknown>)[key], depth + 1);
  return size;
}
