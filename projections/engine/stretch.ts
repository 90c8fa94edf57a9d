import type { NatsConnection } from '@nats-io/transport-node';
import type { LogBatch } from '../../src/log/event-log.ts';
import { createLogReader } from '../../src/log/reader.ts';
import type { Names } from '../../src/log/subjects.ts';
import type { Logger } from '../../src/observe/log.ts';
import type { Config } from '../../src/platform/config.ts';
import type { Committer } from './committer.ts';
import { type Hole, holesIn } from './holes.ts';
import { Inbox } from './inbox.ts';
import type { LogInspector, LogState } from './log-state.ts';
import type { Positions } from './positions.ts';
import type { Progress } from './projection.ts';

/** What to read. */
export interface StretchPlan {
  readonly stream: 'tasks' | 'history';
  readonly fromSeq: number;
  /** Sequence of HISTORY where `fromSeq` lies. */
  readonly historyFrom?: number;
  /** The last event to apply; without it, it goes on until something asks for a fresh look. */
  readonly untilSeq?: number;
}

export interface StretchParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly config: Pick<Config, 'projectorBatchEvents' | 'projectorBatchMs'>;
  readonly logger: Logger;
  readonly inspector: LogInspector;
  readonly committer: Committer;
  readonly positions: Positions;
  /** Called before a batch, now and then; must not throw for anything but an end. */
  readonly maintain: () => Promise<void>;
  /** Of the events in one transaction, roughly. */
  readonly maxBatchBytes?: number;
}

/** Small, so that large payloads are noticed before many of them are in memory. */
const READ_BATCH = 500;
const MAX_BATCH_BYTES = 8 * 1_048_576;
/** After a quiet time the first event waits only so long for company: read-your-writes is quick when nothing else happens. */
const SETTLE_MS = 4;
const CHECK_LOG_MS = 5_000;
const MAINTAIN_MS = 3_600_000;

/**
 * One run of reading a stream and committing what it gives. A transaction starts at most every `projectorBatchMs`, so a
 * slow log costs little and a fast one gives large batches, which cost least an event; the next batch gathers and is
 * decoded while Postgres works on this one.
 */
export class Stretch {
  readonly #parts: StretchParts;
  readonly #plan: StretchPlan;
  readonly #log: LogState;
  readonly #progress: readonly Progress[];
  readonly #inbox: Inbox;
  /** Last sequence that the reader has given. */
  #previous: number;

  constructor(parts: StretchParts, run: { plan: StretchPlan; log: LogState; progress: readonly Progress[] }) {
    this.#parts = parts;
    this.#plan = run.plan;
    this.#log = run.log;
    this.#progress = run.progress;
    this.#previous = run.plan.fromSeq - 1;
    this.#inbox = new Inbox({
      maxEvents: parts.config.projectorBatchEvents,
      maxBytes: parts.maxBatchBytes ?? MAX_BATCH_BYTES,
    });
  }

  /** Returns at the plan's end, after `end()`, or when the log needs a fresh look; throws what the committer throws. */
  async run(): Promise<void> {
    const { nc, names, logger, config } = this.#parts;
    const { stream, fromSeq, historyFrom } = this.#plan;
    const maxBatch = Math.min(READ_BATCH, config.projectorBatchEvents);
    const reader = createLogReader(
      { nc, names, logger },
      {
        stream,
        fromSeq,
        ...(historyFrom === undefined ? {} : { historyFrom }),
        maxBatch,
        gatherMs: 0,
        onBatch: (batch) => this.#receive(batch),
      },
    );
    const checks = setInterval(() => void this.#checkLog(), CHECK_LOG_MS);
    try {
      await reader.start();
      await this.#commitAll();
    } finally {
      clearInterval(checks);
      this.#inbox.close();
      await reader.stop();
    }
  }

  /** Ends after the transaction at hand. What was read and not committed will be read again. */
  end(): void {
    this.#inbox.close();
  }

  async #commitAll(): Promise<void> {
    const { committer, positions, maintain, config } = this.#parts;
    const { untilSeq } = this.#plan;
    let notBefore = 0;
    let maintainAt = 0;
    for (;;) {
      const batch = await this.#inbox.next({ notBefore, settleMs: SETTLE_MS });
      if (batch === undefined) return;
      if (performance.now() >= maintainAt) {
        await maintain();
        maintainAt = performance.now() + MAINTAIN_MS;
      }
      notBefore = performance.now() + config.projectorBatchMs;
      await committer.commit(this.#progress, batch);
      const moved = this.#progress.filter(({ seq }) => seq === batch.lastSeq);
      positions.committed(
        moved.map(({ projection }) => projection.name),
        batch.lastSeq,
        batch.events.length,
      );
      if (untilSeq !== undefined && batch.lastSeq >= untilSeq) return;
    }
  }

  async #receive(read: LogBatch): Promise<void> {
    const { untilSeq } = this.#plan;
    if (untilSeq !== undefined && this.#previous >= untilSeq) return;
    const batch = untilSeq === undefined ? read : upTo(read, untilSeq);
    for (const hole of holesIn(batch, this.#previous)) {
      if (!(await this.#mayPass(hole))) return this.end();
    }
    this.#previous = batch.lastSeq;
    await this.#inbox.offer(batch);
  }

  /** False when the missing events may still be had: then a new stretch looks for them. */
  async #mayPass(hole: Hole): Promise<boolean> {
    const { logger, inspector } = this.#parts;
    const facts = { alarm: 'gap', stream: this.#plan.stream, ...hole };
    try {
      if (this.#plan.stream === 'tasks') {
        if (hole.from < (await inspector.state()).firstSeq) return false;
        if (await inspector.holds(hole.from)) {
          logger.error(facts, 'the reader skipped events that the log still holds; reading them again');
          return false;
        }
      }
    } catch (error) {
      logger.warn({ ...facts, error }, 'a gap could not be examined; looking again');
      return false;
    }
    logger.error(facts, 'events are missing in the log; going on without them');
    return true;
  }

  /** A log that ends before what is committed, or is another one, was lost or replaced. */
  async #checkLog(): Promise<void> {
    const state = await this.#parts.inspector.state().catch(() => undefined);
    if (state === undefined) return;
    this.#parts.positions.logReaches(state.lastSeq);
    const committed = Math.max(...this.#progress.map(({ seq }) => seq));
    if (state.logId !== this.#log.logId || state.lastSeq < committed) this.end();
  }
}

/** Without the events after `seq`. */
function upTo(batch: LogBatch, seq: number): LogBatch {
  if (batch.lastSeq <= seq) return batch;
  return {
    events: batch.events.filter((recorded) => recorded.seq <= seq),
    unreadable: batch.unreadable.filter((each) => each.seq <= seq),
    lastSeq: seq,
  };
}
