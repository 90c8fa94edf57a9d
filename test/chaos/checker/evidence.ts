import type { AuditRow } from '../../../projections/audit/apply.ts';
import type { Recorded } from '../../../src/domain/events.ts';

/** What a client asked for, and what it was told. The client chose the task id, so an answer never heard can be looked up. */
export type Operation = SubmitOperation | CancelOperation;

interface Asked {
  /** ms since 1970, of the machine that all parts of a run share. */
  readonly at: number;
  readonly tenant: string;
  readonly taskId: string;
  /**
   * `acknowledged`: it happened. `refused`: it did not, and never will. `unknown`: no answer came, or one that leaves it
   * open.
   */
  readonly outcome: 'acknowledged' | 'refused' | 'unknown';
  /** What the client was told, for people. */
  readonly answer?: string;
}
export interface SubmitOperation extends Asked {
  readonly op: 'submit';
  readonly type: string;
  /** Sequence of the first event, when the answer said one. */
  readonly seq?: number;
}
export interface CancelOperation extends Asked {
  readonly op: 'cancel';
}

/** At most `max` attempts of these tasks run at any moment; absent parts of the scope match everything. */
export interface ConcurrencyLimit {
  readonly tenant?: string;
  readonly type?: string;
  readonly max: number;
}

/** The slots that a recurring task should have fired in, and the tasks that say they are of one of them. */
export interface Schedule {
  readonly tenant: string;
  readonly name: string;
  /** Instants, ms since 1970. */
  readonly expected: readonly number[];
}
export interface FiredSlot {
  readonly tenant: string;
  readonly schedule: string;
  readonly slotAt: number;
  readonly taskId: string;
}

/** A completion, as a subscriber heard it. */
export interface HeardCompletion {
  readonly seq: number;
  readonly taskId: string;
}

/** Everything that a run leaves behind. The log is the truth that the rest is compared with. */
export interface Evidence {
  readonly operations: readonly Operation[];
  /** The whole of TASKS, in order. */
  readonly log: readonly Recorded[];
  /** The whole of HISTORY. */
  readonly history: readonly Recorded[];
  /** The rows of `audit`, by sequence. */
  readonly audit: readonly AuditRow[];
  /** What each complete feed of completions gave, in the order of hearing. */
  readonly feeds: Readonly<Record<string, readonly HeardCompletion[]>>;
  readonly limits: readonly ConcurrencyLimit[];
  readonly schedules: readonly Schedule[];
  readonly slots: readonly FiredSlot[];
}

export const RULES = {
  acknowledged: 'every acknowledged submission is in the log, where the answer said',
  refused: 'no refused submission is in the log',
  cancelled: 'every acknowledged cancellation is in the log',
  terminal: 'every task ends',
  completions: 'no task is completed twice',
  legal: 'every event is legal where it stands, and an attempt is told of by its holder alone',
  attempts: 'attempts and delays are those of the policy',
  limits: 'no concurrency limit is exceeded',
  slots: 'no slot of a schedule is missed or fired twice',
  history: 'HISTORY equals the log',
  audit: 'the audit in Postgres equals the log',
  feeds: 'every feed of completions is complete and in order',
} as const;
export type Rule = keyof typeof RULES;

export interface Violation {
  readonly rule: Rule;
  readonly message: string;
  /** The shortest history that shows it, one fact a line. */
  readonly witness: readonly string[];
}
