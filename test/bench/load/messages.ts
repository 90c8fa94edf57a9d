import type { Quantiles } from './clock.ts';

/** What the bench asks of a load process, and what that answers: requests by number over the channel of `fork`. */
export interface Target {
  readonly natsUrl: string;
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly tenant: string;
  readonly type: string;
  /** Straight to the log as a trusted submitter, or over HTTP. */
  readonly via: 'log' | 'http';
}

export interface ProducerCalls {
  open(target: Target): void;
  /** Keeps `inFlight` calls outstanding until `tasks` are accepted or `seconds` have passed. */
  flood(order: {
    readonly tasks?: number;
    readonly seconds?: number;
    readonly inFlight: number;
    /** Tasks a call; 1 submits one by one. */
    readonly batch: number;
    /** Due in the second that begins at this instant (ms since 1970), spread over its milliseconds. */
    readonly dueFrom?: number;
  }): Submitted;
  /** Single submissions at a fixed rate, whatever became of earlier ones; due `delayMs` later. */
  pace(order: {
    readonly perSecond: number;
    readonly seconds: number;
    readonly delayMs?: number;
  }): Submitted & { maxLagMs: number };
  /** Single submissions as long as there is credit: `window` at first, then what `credit` adds. Ends with `close`. */
  closedLoop(order: { readonly window: number }): Submitted;
  credit(order: { readonly tasks: number }): void;
  close(): void;
  end(): void;
}

export interface Submitted {
  readonly tasks: number;
  readonly seconds: number;
}

export interface WorkerCalls {
  open(order: {
    readonly natsUrl: string;
    readonly type: string;
    readonly concurrency: number;
    readonly keepLatency: boolean;
    /** How long a handler takes; it returns at once when absent. */
    readonly runMs?: number;
  }): void;
  /** Forgets what was counted so far. */
  reset(): void;
  stats(): WorkerStats;
  end(): void;
}

export interface WorkerStats {
  readonly completed: number;
  /** Tasks that a handler has seen more than once. */
  readonly repeated: number;
  readonly firstStartUs: number;
  readonly lastCompletedUs: number;
  /** Starts of each tenant's tasks. */
  readonly tenants: Readonly<Record<string, { readonly starts: number; readonly lastStartUs: number }>>;
  /** From the beginning of the submission to the start of the handler, and to the stored completion. */
  readonly start: Quantiles;
  readonly done: Quantiles;
}

export type Request = { readonly id: number; readonly call: string; readonly order?: unknown };
export type Reply =
  | { readonly id: number; readonly value: unknown }
  | { readonly id: number; readonly error: string };
/** Sent by a worker by itself: how many tasks it has completed since it began, at which instant. */
export type Progress = { readonly completed: number; readonly atUs: number };
