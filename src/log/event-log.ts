import type { Recorded, TaskEvent } from '../domain/events.ts';
import type { TaskState } from '../domain/task.ts';
import type { Service } from '../platform/service.ts';

/** What became of an append. Expected outcomes are values; an outcome still unknown after all retries throws `log_unavailable`. */
export type AppendOutcome =
  | { readonly status: 'stored'; readonly seq: number }
  /** Somebody else moved the task: `lastSeq` is its last sequence now (0 when the server did not say). Read again, decide again. */
  | { readonly status: 'conflict'; readonly lastSeq: number };

/**
 * The event log. The only way to change a task is `append`, and every append is fenced (rule 1).
 */
export interface EventLog {
  /**
   * Stores one event if the task's last sequence still is `expectedSeq` (0: the task must not exist).
   * Retries unknown outcomes with the same event id and recognises its own earlier success. `may` is asked before every
   * try; when it says no, the append is given up as `log_unavailable`.
   */
  append(event: TaskEvent, expectedSeq: number, may?: () => boolean): Promise<AppendOutcome>;
  /** The task's events that the hot window still holds, in order. `atLeastSeq`: not older than this sequence, even on a lagging replica. */
  readTask(tenant: string, taskId: string, atLeastSeq?: number): Promise<Recorded[]>;
  /** Only the last of each kind, in order: one request, however long the history is. No history: what has come twice does not fold. */
  readLasts(tenant: string, taskId: string, atLeastSeq?: number): Promise<Recorded[]>;
  /** The folded state, undefined when the hot window knows nothing of the task. */
  readState(tenant: string, taskId: string, atLeastSeq?: number): Promise<TaskState | undefined>;
  /** One event by its sequence, undefined when it has aged out. */
  readEvent(seq: number): Promise<Recorded | undefined>;
  /** First and last sequence of TASKS. */
  bounds(): Promise<{ firstSeq: number; lastSeq: number }>;
}

export interface ReaderOptions {
  /** The first sequence to deliver; the reader starts later when the stream does. */
  readonly fromSeq: number;
  /**
   * Called with events in sequence order, one call at a time: the next batch waits for the promise. An event that cannot
   * be decoded comes as `unreadable`. Only every sequence of `from..to` that still exists is in it.
   */
  onBatch(batch: LogBatch): Promise<void> | void;
  /** Most events in one batch. */
  readonly maxBatch: number;
  /** How long to gather after the first event when the log is slow; 0 hands over at once what has arrived. */
  readonly gatherMs: number;
}

export interface LogBatch {
  readonly events: readonly Recorded[];
  readonly unreadable: readonly { readonly seq: number; readonly text: string; readonly reason: string }[];
  /** Highest sequence covered. */
  readonly lastSeq: number;
}

/** Reads TASKS in order with one ack-none consumer over everything (the cheapest way), and heals over reconnects and leader changes. */
export interface LogReader extends Service {
  /** Highest sequence handed to `onBatch` whose promise has resolved. */
  position(): number;
  /** Resolves when `position() >= seq`. */
  whenReached(seq: number): Promise<void>;
}
