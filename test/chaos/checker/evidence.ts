import type { AuditRow } from '../../../projections/audit/apply.ts';
import type { Recorded } from '../../../src/domain/events.ts';

/** What a client asked for, and what it was told. The client chose the task id, so an answer never heard can be looked up. */
export type Operation = SubmitOperation | CommandOperation;

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
/** Something asked of one task. */
export interface CommandOperation extends Asked {
  readonly op: Command;
}
export const COMMANDS = ['cancel', 'reschedule', 'discard'] as const;
export type Command = (typeof COMMANDS)[number];

/**
 * A submission with a key of `throttle` or `debounce`: which task stands for it, the product decides. Submitted once; who hears
 * nothing of it makes another one.
 */
export interface JoinedSubmission {
  readonly by: 'throttle' | 'debounce';
  readonly key: string;
  readonly windowMs: number;
  /** In its payload, and in no other. */
  readonly mark: string;
  readonly tenant: string;
  readonly type: string;
  /** ms since 1970: when it was sent, and when the answer was there. */
  readonly at: number;
  readonly answeredAt: number;
  readonly outcome: Asked['outcome'];
  readonly answer?: string;
  /** The task that stands for it, and the event that says so. A message that was stored has none yet. */
  readonly taskId?: string;
  readonly seq?: number;
}

/**
 * At most `max` attempts of these tasks run at any moment; absent parts of the scope match everything. `eachKey`: of those
 * tasks of one tenant and type that share a `concurrencyKey`, and not of the others.
 */
export interface ConcurrencyLimit {
  readonly tenant?: string;
  readonly type?: string;
  readonly eachKey?: true;
  readonly max: number;
}

/** In any time t no more than `ratePerSecond * t + burst` tasks of the scope are queued. */
export interface DispatchRate {
  readonly tenant: string;
  readonly type?: string;
  readonly ratePerSecond: number;
  readonly burst: number;
}

/** What comes in of a tenant over HTTP and by submitters: in any time t `ratePerSecond * t + burst`, and a share of each process. */
export interface IntakeRate {
  readonly tenant: string;
  readonly ratePerSecond: number;
  readonly burst: number;
  /** How many take submissions at a time. */
  readonly processes: number;
}

/** A process kept the rates of submission by itself, at some time between the two (ms since 1970), because the bucket did not answer it. */
export interface Alone {
  readonly process: string;
  readonly from: number;
  readonly until: number;
}

/** Between these instants (ms since 1970) nothing of the scope is queued: the one of the answer, and the one of the wish to resume. */
export interface PauseWindow {
  readonly tenant?: string;
  readonly type?: string;
  readonly from: number;
  readonly until: number;
}

/** A replay or cancellation of many tasks, as the product shows it at the end. */
export interface Bulk {
  readonly id: string;
  readonly kind: 'replay' | 'cancellation';
  readonly state: string;
  /** How many tasks it says it has moved. */
  readonly moved: number;
}

/** Incarnations of workers whose id has `mark` in it, and the versions of types that they know; of other types the first. */
export interface Release {
  readonly mark: string;
  readonly versions: Readonly<Record<string, readonly [least: number, greatest: number]>>;
}

/** What the product's own `verify` says of a read model. */
export interface Verified {
  readonly projection: string;
  /** Each a line; none when the read model is what the log gives. */
  readonly differences: readonly string[];
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
  readonly joined: readonly JoinedSubmission[];
  readonly limits: readonly ConcurrencyLimit[];
  readonly rates: readonly DispatchRate[];
  readonly intakeRates: readonly IntakeRate[];
  readonly alone: readonly Alone[];
  readonly schedules: readonly Schedule[];
  readonly slots: readonly FiredSlot[];
  readonly pauses: readonly PauseWindow[];
  /** Ids of bulk operations that the product has accepted. */
  readonly bulksAccepted: readonly string[];
  readonly bulks: readonly Bulk[];
  readonly releases: readonly Release[];
  /** What the feed that promises nothing brought. */
  readonly live: readonly HeardCompletion[];
  readonly verified: readonly Verified[];
}

export const RULES = {
  acknowledged: 'every acknowledged submission is in the log, where the answer said',
  refused: 'no refused submission is in the log',
  commands: 'every acknowledged cancellation, change and discard is in the log',
  bulks: 'every accepted replay and cancellation of many comes to its end, and did what it says',
  terminal: 'every task ends',
  completions: 'no task is completed twice',
  legal: 'every event is legal where it stands, and an attempt is told of by its holder alone',
  attempts: 'attempts and delays are those of the policy',
  limits: 'no concurrency limit is exceeded, of a key neither',
  rates: 'no more is queued than a rate allows',
  intake: 'no more is taken in than a rate of submission allows, over all processes',
  throttle: 'a throttle key makes one task a window, which stands for every acknowledged submission',
  debounce:
    'one task of a debounce key waits, with the last payload, and stands for every acknowledged submission',
  order: 'tasks of an ordering key run one at a time, in the order of submission',
  pauses: 'nothing is queued while it is paused',
  versions: 'no worker is given a version that it does not know',
  slots: 'no slot of a schedule is missed or fired twice',
  history: 'HISTORY equals the log',
  audit: 'the audit in Postgres equals the log',
  projections: 'every read model is what the log gives',
  feeds: 'every feed of completions that promises it is complete and in order',
  live: 'the live feed tells of nothing that the log does not have',
} as const;
export type Rule = keyof typeof RULES;

export interface Violation {
  readonly rule: Rule;
  readonly message: string;
  /** The shortest history that shows it, one fact a line. */
  readonly witness: readonly string[];
}
