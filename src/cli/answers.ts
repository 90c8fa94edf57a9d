import type { Actor, EventKind, EventOf, Status } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import type { PolicyOverride } from '../domain/policy.ts';
import type { LetterGroupView, LetterView } from '../query/dead-letters.ts';
import type { TaskView } from '../query/query.ts';

/**
 * The shapes of the HTTP API, as far as a client needs them: what the API passes on as it was read has the shape of the
 * query's views. Instants are ISO 8601 in UTC; null means "not (yet)".
 */

export interface Submission {
  readonly type: string;
  readonly payload: Json;
  /** A UUID becomes the task id; any other text is turned into one. A repeat answers with the original task. */
  readonly idempotencyKey?: string | undefined;
  readonly priority?: number | undefined;
  readonly runAt?: string | number | undefined;
  readonly delayMs?: number | undefined;
  readonly deadlineAt?: string | number | undefined;
  readonly orderingKey?: string | undefined;
  readonly concurrencyKey?: string | undefined;
  readonly policy?: PolicyOverride | undefined;
  /** For operators' keys. */
  readonly tenant?: string | undefined;
}

export interface SubmitAnswer {
  readonly id: string;
  readonly status: Status;
  readonly seq: number;
  readonly replayed: boolean;
}

export interface TaskAnswer {
  /** The log sequence that the answer reflects. */
  readonly position: number;
  readonly task: TaskView;
}
export type Task = TaskView;

export type EventAnswer = {
  readonly [K in EventKind]: {
    readonly seq: number;
    readonly kind: K;
    readonly attempt: number;
    /** The log's clock. */
    readonly storedAt: string;
    readonly actor: Actor;
    readonly data: EventOf<K>['data'];
  };
}[EventKind];

export interface CancelAnswer {
  readonly id: string;
  /** A waiting task is cancelled at once; a running one when its worker has seen the request. */
  readonly event: 'CANCELLED' | 'CANCEL_REQUESTED';
  readonly status: Status;
  readonly seq: number;
}

export interface WhyAnswer {
  readonly sentence: string;
  readonly facts: readonly { readonly kind: string }[];
}

export interface WorkerAnswer {
  readonly id: string;
  readonly types: readonly string[];
  /** Attempts it runs at once. */
  readonly slots: number;
  readonly running: number;
  readonly alive: boolean;
  readonly degraded: string | null;
  readonly seenAt: string;
  /** Of the SDK, and of the code that it runs. */
  readonly version: string;
  readonly workerVersion: string | null;
}

export interface RescheduleAnswer {
  readonly id: string;
  readonly status: Status;
  readonly priority: number;
  /** Not before this instant; null: as soon as its turn comes. */
  readonly dueAt: string | null;
  readonly seq: number;
}

export interface QueueAnswer {
  readonly tenant: string;
  readonly type: string;
  readonly counts: Readonly<Partial<Record<Status, number>>>;
  /** Of the type, over all tenants; `waiting` is null while the dispatcher is silent. */
  readonly backlog: { readonly waiting: number | null; readonly limit: number; readonly full: boolean };
  readonly intake: {
    readonly state: 'open' | 'limited' | 'closed';
    readonly reasons: readonly { readonly sentence: string }[];
  };
  readonly pauses: readonly PauseAnswer[];
}

export interface TaskFilter {
  readonly tenant?: string | undefined;
  readonly type?: string | undefined;
  /** Comma separated. */
  readonly status?: string | undefined;
  readonly worker?: string | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

export type Paged<Name extends string, Item> = {
  readonly position: number;
  readonly nextCursor: string | null;
} & { readonly [K in Name]: readonly Item[] };

export type LetterAnswer = LetterView;
export type LetterGroupAnswer = LetterGroupView;

/** What dead letters are found by; instants as the API takes them. */
export interface LetterFilter {
  readonly tenant?: string | undefined;
  readonly type?: string | undefined;
  readonly fingerprint?: string | undefined;
  readonly reason?: string | undefined;
  readonly workerVersion?: string | undefined;
  readonly deadFrom?: string | number | undefined;
  readonly deadTo?: string | number | undefined;
}

export interface ReplayWish {
  readonly tenant?: string | undefined;
  readonly ids?: readonly string[] | undefined;
  readonly filter?: Omit<LetterFilter, 'tenant'> | undefined;
  readonly dryRun?: boolean | undefined;
  readonly ratePerSecond?: number | undefined;
  readonly payload?: Json | undefined;
  readonly policy?: PolicyOverride | undefined;
  readonly note?: string | undefined;
}

export interface ReplayAnswer {
  readonly id: string;
  /** Null: all tenants. */
  readonly tenant: string | null;
  readonly state: 'running' | 'paused' | 'done' | 'aborted';
  readonly note: string | null;
  readonly edited: readonly string[];
  readonly ratePerSecond: number | null;
  readonly expected: number | null;
  readonly progress: {
    readonly matched: number;
    readonly replayed: number;
    readonly skipped: number;
    readonly failed: number;
    readonly failures: readonly { readonly taskId: string; readonly code: string }[];
  };
  readonly actor: Actor;
  readonly changedBy: Actor | null;
  readonly createdAt: string;
  readonly updatedAt: string;
}
export interface DryRunAnswer {
  readonly count: number;
  readonly sample: readonly LetterAnswer[];
}

interface PageWish {
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}
export type LetterListWish = LetterFilter & PageWish & { readonly state?: string | undefined };
export type LetterGroupWish = Pick<LetterFilter, 'tenant' | 'type' | 'fingerprint'> &
  PageWish & { readonly all?: 'true' | undefined };

interface RateAnswer {
  readonly ratePerSecond?: number;
  readonly burst?: number;
}

export interface PauseAnswer {
  /** Null: of every one. */
  readonly tenant: string | null;
  readonly type: string | null;
  readonly reason: string;
  readonly until: string | null;
  readonly actor: string;
  readonly at: string;
}

export interface CancellationAnswer {
  readonly id: string;
  readonly state: 'running' | 'paused' | 'done' | 'aborted';
  readonly progress: {
    readonly expected: number | null;
    readonly cancelled: number;
    readonly requested: number;
    readonly skipped: number;
    readonly failed: number;
  };
  readonly createdAt: string;
}

export interface CancellationDryRun {
  readonly dryRun: true;
  readonly count: number;
  readonly atLeast: boolean;
  readonly sample: readonly Task[];
}

export interface CancellationWish {
  readonly filter: {
    readonly tenant?: string | undefined;
    readonly type?: string | undefined;
    readonly status?: readonly string[] | undefined;
    readonly submittedFrom?: string | number | undefined;
    readonly submittedTo?: string | number | undefined;
  };
  readonly reason: string;
  readonly ratePerSecond?: number | undefined;
  readonly dryRun?: boolean | undefined;
}

export interface TypeAnswer {
  readonly type: string;
  readonly concurrency?: number;
  readonly concurrencyKeyLimit?: number;
  readonly submission?: RateAnswer;
  readonly policy?: PolicyOverride | undefined;
  readonly priority?: number | undefined;
  readonly maxBacklog?: number | undefined;
}

export interface KeyAnswer {
  readonly id: string;
  readonly tenant: string;
  readonly scopes: readonly string[];
  readonly name: string;
  readonly createdAt: string;
  readonly revokedAt: string | null;
}
/** The only answer that ever has the text of a key. */
export interface NewKey {
  readonly id: string;
  readonly key: string;
}

export interface TenantAnswer {
  readonly name: string;
  readonly createdAt: string;
  readonly displayName?: string | undefined;
  readonly weight?: number;
  readonly limits?: RateAnswer & { readonly concurrency?: number };
  readonly submission?: RateAnswer;
  readonly maxBacklog?: number;
  readonly types?: Readonly<
    Record<
      string,
      RateAnswer & {
        readonly weight?: number;
        readonly concurrency?: number;
        readonly submission?: RateAnswer;
      }
    >
  >;
}

export interface JobAnswer {
  readonly id: string;
  readonly kind: 'rebuild' | 'verify' | 'build';
  readonly projections: readonly string[];
  readonly schema: string;
  readonly state: 'waiting' | 'running' | 'stopped' | 'done' | 'failed' | 'discarded';
  readonly phase: string | null;
  readonly position: number;
  readonly target: number;
  readonly eventsPerSecond: number;
  readonly report: {
    readonly position: number;
    readonly seconds: number;
    readonly poisoned: number;
    readonly tables?: readonly {
      readonly table: string;
      readonly rows: number;
      readonly missing: number;
      readonly surplus: number;
      readonly changed: number;
      readonly fromSeq: number | null;
      readonly sample: readonly {
        readonly key: Readonly<Record<string, unknown>>;
        readonly columns: readonly string[];
        readonly live: Readonly<Record<string, unknown>> | null;
      }[];
    }[];
  } | null;
  readonly error: string | null;
  readonly requestedAt: string;
  readonly finishedAt: string | null;
}

export interface StreamsAnswer {
  readonly history: {
    readonly checkedTo: number;
    readonly lag: number;
    readonly stalled: boolean;
    readonly findings: readonly {
      readonly what: string;
      readonly fromSeq: number;
      readonly toSeq: number;
      readonly historySeq: number;
      readonly foundAt: string;
    }[];
    readonly accepted: number;
    readonly checkedAt: string;
  } | null;
  readonly dangers: readonly {
    readonly stream: string;
    readonly limit: string;
    readonly seq: number;
    readonly why: string;
  }[];
}

export interface ProjectionsAnswer {
  readonly log: { readonly firstSeq: number; readonly lastSeq: number };
  readonly keptFromSeq: number;
  readonly projections: readonly {
    readonly name: string;
    readonly position: number;
    readonly lag: number;
    readonly movedAt: string;
    readonly poisoned: number;
  }[];
  readonly jobs: readonly JobAnswer[];
  readonly streams: StreamsAnswer;
}

/** What a schedule is to be; what is absent has the server's default. */
export interface ScheduleWish {
  readonly type: string;
  readonly payload: Json;
  readonly cron?: string | undefined;
  readonly every?: string | number | undefined;
  readonly timeZone?: string | undefined;
  readonly priority?: number | undefined;
  readonly overlap?: string | undefined;
  readonly missed?: string | undefined;
  readonly missedLimit?: number | undefined;
  readonly startAt?: string | undefined;
  readonly endAt?: string | undefined;
}

export interface ScheduleAnswer extends ScheduleWish {
  readonly tenant: string;
  readonly name: string;
  readonly version: number;
  readonly timeZone: string;
  readonly overlap: string;
  readonly missed: string;
  readonly changedAt: string;
  readonly changedBy: Actor;
  readonly paused?:
    | { readonly at: string; readonly by: Actor; readonly reason?: string | undefined }
    | undefined;
  readonly nextAt: string | null;
}

export interface SlotsAnswer {
  readonly timeZone: string;
  readonly timeZoneData: string;
  readonly slots: readonly { readonly at: string; readonly local: string }[];
}
