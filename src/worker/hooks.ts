import type { TaskError } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import type { TaskInfo } from './handler.ts';
import type { LostCause } from './outcome.ts';

/** The attempt that a hook is told of. */
export interface AttemptInfo {
  readonly task: TaskInfo;
  /** Undefined when the attempt was another process's, whose spool this worker has told. */
  readonly payload: unknown;
}

/** Told what becomes of attempts, after the log has stored it. What a hook throws is logged and ignored. */
export interface WorkerHooks {
  /** PROCESSING is stored: the handler is about to be called. */
  started?(attempt: AttemptInfo): void;
  completed?(attempt: AttemptInfo & { readonly result: Json | undefined }): void;
  /** `retryInMs`: from now to the next attempt, at the earliest; undefined when the failure was the last. */
  failed?(attempt: AttemptInfo & { readonly error: TaskError; readonly retryInMs: number | undefined }): void;
  cancelled?(attempt: AttemptInfo): void;
  /** The worker gave the attempt back because it stops. */
  released?(attempt: AttemptInfo): void;
  /** The outcome was not accepted, or could not be told: another attempt has been or will be made. */
  lost?(attempt: AttemptInfo & { readonly cause: LostCause }): void;
  /** A promise that nobody awaits was rejected, somewhere in this process. */
  strayRejection?(reason: unknown): void;
}

/** Counted since the worker was made; attempts, unless it says otherwise. */
export interface WorkerStats {
  /** At the moment. */
  readonly running: number;
  readonly claimed: number;
  readonly completed: number;
  readonly failed: number;
  readonly cancelled: number;
  readonly released: number;
  readonly lost: number;
  /** Outcomes that the log had not answered about when the worker stopped: they wait in its spool. */
  readonly spooled: number;
  /** Outcomes of dead workers that this one found in the spool directory and told. */
  readonly inherited: number;
  /** Deliveries given back unclaimed. */
  readonly handedBack: number;
  /** Attempts of other workers that this one recorded as lost. */
  readonly reclaimed: number;
  readonly strayRejections: number;
}

export type Counters = { -readonly [K in Exclude<keyof WorkerStats, 'running'>]: number };

export const newCounters = (): Counters => ({
  claimed: 0,
  completed: 0,
  failed: 0,
  cancelled: 0,
  released: 0,
  lost: 0,
  spooled: 0,
  inherited: 0,
  handedBack: 0,
  reclaimed: 0,
  strayRejections: 0,
});
