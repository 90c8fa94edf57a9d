import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { Logger } from '../observe/log.ts';
import { Nap } from '../platform/nap.ts';
import { sparingly } from '../platform/patience.ts';
import type { LogBatch, LogReader, ReaderOptions } from './event-log.ts';
import { batchOf } from './log-batch.ts';
import { type Delivered, OrderedPull } from './ordered-pull.ts';
import type { Names } from './subjects.ts';

export interface ReaderParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly logger: Logger;
}

/** `stream`: HISTORY gives every event since the beginning, with the sequence it has in TASKS; it is a moment behind. */
export type LogReaderOptions = ReaderOptions & {
  readonly stream?: 'tasks' | 'history';
  /** Sequence of HISTORY to begin at, when it is known; else it is read from its beginning. */
  readonly historyFrom?: number;
};

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 500;
/** Pause before a batch is offered again that the user could not take. */
const REOFFER_MS = 500;
const MIN_CAPACITY = 512;

/**
 * Reads the log in order and offers it in batches. While a batch is being dealt with, the next messages gather, up to
 * a bound. A batch whose promise rejects is offered again, unchanged.
 */
export function createLogReader(parts: ReaderParts, options: LogReaderOptions): LogReader {
  return new Reader(parts, options);
}

class Reader implements LogReader {
  readonly name: string;
  readonly #parts: ReaderParts;
  readonly #options: LogReaderOptions;
  readonly #stream: string;
  #jsm: JetStreamManager | undefined;
  #pull: OrderedPull | undefined;
  /** Received and not yet offered. */
  #queue: Delivered[] = [];
  /** Messages of the batch at hand. */
  #offered = 0;
  /** Highest sequence received, in the stream that is read; the next consumer starts after it. */
  #received: number;
  #position: number;
  #waiters: {
    readonly seq: number;
    readonly resolve: () => void;
    readonly reject: (error: Error) => void;
  }[] = [];
  /** Ends with the next message. */
  readonly #untilMore = new Nap();
  readonly #untilReoffer = new Nap();
  #stopping = false;
  #finished: Promise<void> | undefined;
  #retryTimer: NodeJS.Timeout | undefined;
  #pauseMs = FIRST_PAUSE_MS;
  readonly #sayBroken: (reason: string) => void;

  constructor(parts: ReaderParts, options: LogReaderOptions) {
    this.#parts = parts;
    this.#options = options;
    const history = options.stream === 'history';
    this.#stream = history ? parts.names.streams.history : parts.names.streams.tasks;
    this.name = `reader of ${this.#stream}`;
    this.#position = Math.max(0, options.fromSeq - 1);
    this.#received = history ? (options.historyFrom ?? 1) - 1 : this.#position;
    this.#sayBroken = sparingly((reason) =>
      parts.logger.warn({ reader: this.name, after: this.#received, reason }, 'reading again'),
    );
  }

  async start(): Promise<void> {
    if (this.#finished !== undefined || this.#stopping) return;
    this.#jsm = await jetstreamManager(this.#parts.nc, { checkAPI: false });
    this.#finished = this.#run();
    await this.#open();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#retryTimer);
    this.#pull?.end();
    this.#untilMore.wake();
    this.#untilReoffer.wake();
    await this.#finished;
    for (const { reject } of this.#waiters.splice(0)) reject(new TaskledgerError('shutting_down'));
  }

  position(): number {
    return this.#position;
  }

  whenReached(seq: number): Promise<void> {
    if (this.#position >= seq) return Promise.resolve();
    if (this.#stopping) return Promise.reject(new TaskledgerError('shutting_down'));
    return new Promise((resolve, reject) => this.#waiters.push({ seq, resolve, reject }));
  }

  async #open(): Promise<void> {
    if (this.#stopping || this.#jsm === undefined) return;
    const pull = new OrderedPull({
      nc: this.#parts.nc,
      jsm: this.#jsm,
      stream: this.#stream,
      fromSeq: this.#received + 1,
      capacity: Math.max(MIN_CAPACITY, 2 * this.#options.maxBatch),
      held: this.#queue.length + this.#offered,
      onMessage: (delivered) => {
        this.#received = delivered.seq;
        this.#queue.push(delivered);
        this.#pauseMs = FIRST_PAUSE_MS;
        this.#untilMore.wake();
      },
      onBroken: (reason) => this.#reopen(reason),
    });
    this.#pull = pull;
    try {
      await pull.open();
      if (this.#stopping) pull.end();
    } catch (error) {
      pull.end();
      this.#reopen((error as Error).message);
    }
  }

  #reopen(reason: string): void {
    this.#pull = undefined;
    if (this.#stopping) return;
    if (this.#parts.nc.isClosed()) {
      this.#parts.logger.error({ reader: this.name, reason }, 'the connection is closed; reading has ended');
      return;
    }
    this.#sayBroken(reason);
    this.#retryTimer = setTimeout(() => void this.#open(), this.#pauseMs);
    this.#pauseMs = Math.min(MAX_PAUSE_MS, this.#pauseMs * 2);
  }

  async #run(): Promise<void> {
    while (!this.#stopping) await this.#runOnce();
  }

  /** Waits for messages, offers one batch. */
  async #runOnce(): Promise<void> {
    const { maxBatch, gatherMs } = this.#options;
    if (this.#queue.length === 0) await this.#untilMore.take();
    if (this.#queue.length === 0) return;
    if (gatherMs > 0 && this.#queue.length < maxBatch)
      await this.#untilGathered(performance.now() + gatherMs);
    const taken = this.#queue.splice(0, maxBatch);
    this.#offered = taken.length;
    const batch = batchOf(taken, { ...this.#options, after: this.#position });
    if (batch !== undefined && !(await this.#offer(batch))) return;
    if (batch !== undefined) this.#moveTo(batch.lastSeq);
    this.#offered = 0;
    this.#pull?.taken(taken.length);
  }

  async #offer(batch: LogBatch): Promise<boolean> {
    while (!this.#stopping) {
      try {
        await this.#options.onBatch(batch);
        return true;
      } catch (error) {
        this.#parts.logger.error(
          { reader: this.name, lastSeq: batch.lastSeq, error },
          'a batch was not taken; offering it again',
        );
        if (!this.#stopping) await this.#untilReoffer.take(REOFFER_MS);
      }
    }
    return false;
  }

  #moveTo(seq: number): void {
    this.#position = Math.max(this.#position, seq);
    if (this.#waiters.length === 0) return;
    const [reached, others] = partition(this.#waiters, (waiter) => waiter.seq <= this.#position);
    this.#waiters = others;
    for (const { resolve } of reached) resolve();
  }

  async #untilGathered(deadline: number): Promise<void> {
    while (!this.#stopping && this.#queue.length < this.#options.maxBatch) {
      const leftMs = deadline - performance.now();
      if (leftMs <= 0) return;
      await this.#untilMore.take(leftMs);
    }
  }
}

function partition<T>(items: readonly T[], belongs: (item: T) => boolean): [T[], T[]] {
  const yes: T[] = [];
  const no: T[] = [];
  for (const item of items) (belongs(item) ? yes : no).push(item);
  return [yes, no];
}
