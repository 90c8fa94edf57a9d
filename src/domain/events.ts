import { z } from 'zod';
import { JsonSchema } from './json.ts';
import { NameSchema, PrioritySchema, TaskIdSchema } from './names.ts';
import { PolicyOverrideSchema } from './policy.ts';

/**
 * The events of a task's life, as they stand in the log. Version 1.
 *
 * The envelope repeats what the subject says, because HISTORY keeps only a part of the subject. `from` is the
 * status that the event leaves, so that a counter can be kept from the event alone.
 */
export const EVENT_VERSION = 1;

/** Statuses a task can have. CANCEL_REQUESTED, CARRIED, DISCARDED and RESCHEDULED are events that change no status. */
export const STATUSES = [
  'INGESTED',
  'QUEUED',
  'CLAIMED',
  'PROCESSING',
  'COMPLETED',
  'FAILED',
  'RETRY_CLAIMED',
  'DEAD_LETTER',
  'REPLAYED',
  'CANCELLED',
  'REJECTED',
] as const;
export type Status = (typeof STATUSES)[number];
export const StatusSchema = z.enum(STATUSES);

export const EVENT_KINDS = [...STATUSES, 'CANCEL_REQUESTED', 'CARRIED', 'DISCARDED', 'RESCHEDULED'] as const;
export type EventKind = (typeof EVENT_KINDS)[number];

const instant = z.int().min(0);

/** Who caused an event. Worker ids name an incarnation: a restarted worker has a new one. */
export const ActorSchema = z.strictObject({
  kind: z.enum(['worker', 'dispatcher', 'intake', 'key', 'user']),
  id: z.string().min(1).max(200),
});
export type Actor = z.infer<typeof ActorSchema>;

/** A handler's error, reduced to what can be stored. `message` and `stack` are cut to a bound by the worker. */
export const TaskErrorSchema = z.strictObject({
  name: z.string(),
  message: z.string(),
  code: z.string().optional(),
  stack: z.string().optional(),
});
export type TaskError = z.infer<typeof TaskErrorSchema>;

/** Why a task ends in its dead-letter queue. */
export const DEAD_LETTER_REASONS = ['retries', 'not_retryable', 'deadline', 'poison'] as const;
export const DeadLetterReasonSchema = z.enum(DEAD_LETTER_REASONS);
export type DeadLetterReason = z.infer<typeof DeadLetterReasonSchema>;

/** Why an attempt is given up as lost: the lease ran out, or its worker stopped before the attempt ended. */
export const LostReasonSchema = z.enum(['lease_expired', 'worker_gone', 'shutdown']);
export type LostReason = z.infer<typeof LostReasonSchema>;

/** Of a task type's contract: a worker is only given tasks of versions that it registered for. */
export const VersionSchema = z.int().min(1).max(9_999);
/** A key that tasks of one tenant and type share, to run one after the other or few at a time. */
export const TaskKeySchema = z.string().min(1).max(200);
const keys = { orderingKey: TaskKeySchema.optional(), concurrencyKey: TaskKeySchema.optional() };

/** How long further submissions of its key may go on pushing a debounced task. */
const DebounceSchema = z.strictObject({
  /** Its due time is not pushed beyond this instant. */
  until: instant,
  /** When the submission was made whose payload it has, by the servers' clock. */
  at: instant,
});

/** What the next step needs to know of a task, so that a worker can decide from the QUEUED event alone. */
export const FactsSchema = z.strictObject({
  submittedAt: instant,
  policy: PolicyOverrideSchema.optional(),
  deadlineAt: instant.optional(),
  /** Attempts made in earlier rounds. */
  attemptsBefore: z.int().min(0),
  /** Attempts of this round that ended in a lost lease. */
  lost: z.int().min(0),
  /** Lost attempts of this round that do not count, because the fleet was ill; absent for none. */
  pardoned: z.int().min(1).optional(),
  /** What a worker must know to run it; absent for version 1. */
  version: VersionSchema.optional(),
  ...keys,
  /** Of a debounced task, while it has not been handed out. */
  debounce: DebounceSchema.optional(),
  /** Sequence of the event that began the round: the place among the tasks of the ordering key. With an ordering key only. */
  orderSeq: z.int().min(1).optional(),
});
export type Keys = Pick<Facts, 'orderingKey' | 'concurrencyKey' | 'orderSeq'>;
export type Facts = z.infer<typeof FactsSchema>;

/** The next step after an attempt went wrong: a retry after a delay, or the end. */
const next = z.union([
  z.strictObject({ retryInMs: z.int().min(0) }),
  z.strictObject({ final: DeadLetterReasonSchema }),
]);
export type NextStep = z.infer<typeof next>;

const payloadPart = { payload: JsonSchema.optional(), payloadSeq: z.int().min(1).optional() };

/** The folded state that a CARRIED event holds; `evolve` starts from it when the earlier events, the payload's too, have aged out. */
const CarriedStateSchema = z.strictObject({
  status: StatusSchema,
  facts: FactsSchema,
  holder: z.string().optional(),
  dueAt: instant.optional(),
  next: next.optional(),
  cancelRequested: z.boolean(),
  fingerprint: z.string().optional(),
  payload: JsonSchema,
});

/** Whose slot a task is: the schedule of its tenant, and the slot's instant unless somebody ran the schedule by hand. */
export const ScheduledSchema = z.strictObject({ name: NameSchema, slotAt: instant.optional() });
export type Scheduled = z.infer<typeof ScheduledSchema>;

const data = {
  INGESTED: z.strictObject({
    payload: JsonSchema,
    /** Hash of type and payload, to tell a repeat from a conflict. */
    fingerprint: z.string().optional(),
    idempotencyKey: z.string().optional(),
    ...keys,
    policy: PolicyOverrideSchema.optional(),
    runAt: instant.optional(),
    deadlineAt: instant.optional(),
    /** Absent for version 1. */
    version: VersionSchema.optional(),
    schedule: ScheduledSchema.optional(),
    debounce: z.strictObject({ key: TaskKeySchema, ...DebounceSchema.shape }).optional(),
    /** It stands for all submissions of the key in its window of time. */
    throttle: z.strictObject({ key: TaskKeySchema, windowMs: z.int().min(1) }).optional(),
  }),
  REJECTED: z.strictObject({
    reasons: z
      .array(z.strictObject({ code: z.string(), field: z.string().optional(), message: z.string() }))
      .min(1),
  }),
  QUEUED: z.strictObject({
    facts: FactsSchema,
    ...payloadPart,
    /** Only where the work item is announced again: the events before it may have aged out when somebody asks. */
    fingerprint: z.string().optional(),
  }),
  CLAIMED: z.strictObject({}),
  PROCESSING: z.strictObject({}),
  COMPLETED: z.strictObject({ result: JsonSchema.optional(), runMs: z.int().min(0).optional() }),
  FAILED: z.strictObject({
    error: TaskErrorSchema,
    next,
    runMs: z.int().min(0).optional(),
    /** Release of the code that failed, when its worker says so. */
    workerVersion: z.string().max(100).optional(),
  }),
  /** The release that the lost worker ran is not told: another tells of the loss, and a claim does not say it. */
  RETRY_CLAIMED: z.strictObject({ lostWorker: z.string(), reason: LostReasonSchema, next }),
  DEAD_LETTER: z.strictObject({
    reason: DeadLetterReasonSchema,
    /** For a replay after the events before this one have aged out. Absent in events of the first releases. */
    facts: FactsSchema.optional(),
  }),
  REPLAYED: z.strictObject({
    note: z.string().optional(),
    payload: JsonSchema.optional(),
    policy: PolicyOverrideSchema.optional(),
    /** What the round before leaves behind: the new round must not depend on events that are about to age out. */
    carried: z
      .strictObject({
        facts: FactsSchema,
        fingerprint: z.string().optional(),
        /** Unless another payload takes its place. */
        payload: JsonSchema.optional(),
      })
      .optional(),
  }),
  /** A dead letter that nobody will replay. */
  DISCARDED: z.strictObject({ reason: z.string() }),
  CANCEL_REQUESTED: z.strictObject({ reason: z.string().optional() }),
  CANCELLED: z.strictObject({ reason: z.string().optional() }),
  CARRIED: z.strictObject({ state: CarriedStateSchema }),
  /** A waiting task gets another place in line, and another payload when its debounce key was submitted again. The priority that it has from now on is in the envelope. */
  RESCHEDULED: z.strictObject({
    /** The priority before, when it changes. */
    fromPriority: PrioritySchema.optional(),
    /** What was asked for: an instant, or null for "as soon as possible". */
    runAt: instant.nullable().optional(),
    /** Not to be queued before this instant from now on; null: no longer waiting for one. */
    dueAt: instant.nullable(),
    payload: JsonSchema.optional(),
    /** Of a debounced task: when the submission was made whose payload it has now. */
    debouncedAt: instant.optional(),
  }),
};

const event = <K extends EventKind, D extends z.ZodType>(kind: K, dataSchema: D) =>
  z.strictObject({
    v: z.literal(EVENT_VERSION),
    id: TaskIdSchema,
    kind: z.literal(kind),
    taskId: TaskIdSchema,
    tenant: NameSchema,
    type: NameSchema,
    /** The status before this event; null for the first of a task. */
    from: StatusSchema.nullable(),
    round: z.int().min(1),
    /** Attempts claimed so far, over all rounds: never goes down. */
    attempt: z.int().min(0),
    priority: PrioritySchema,
    /** The actor's clock, in ms since 1970: for people. Order and due times come from the log. */
    at: instant,
    actor: ActorSchema,
    /** W3C traceparent. */
    trace: z.string().max(100).optional(),
    data: dataSchema,
  });

const schemas = {
  INGESTED: event('INGESTED', data.INGESTED),
  REJECTED: event('REJECTED', data.REJECTED),
  QUEUED: event('QUEUED', data.QUEUED),
  CLAIMED: event('CLAIMED', data.CLAIMED),
  PROCESSING: event('PROCESSING', data.PROCESSING),
  COMPLETED: event('COMPLETED', data.COMPLETED),
  FAILED: event('FAILED', data.FAILED),
  RETRY_CLAIMED: event('RETRY_CLAIMED', data.RETRY_CLAIMED),
  DEAD_LETTER: event('DEAD_LETTER', data.DEAD_LETTER),
  REPLAYED: event('REPLAYED', data.REPLAYED),
  CANCEL_REQUESTED: event('CANCEL_REQUESTED', data.CANCEL_REQUESTED),
  CANCELLED: event('CANCELLED', data.CANCELLED),
  CARRIED: event('CARRIED', data.CARRIED),
  DISCARDED: event('DISCARDED', data.DISCARDED),
  RESCHEDULED: event('RESCHEDULED', data.RESCHEDULED),
} satisfies { readonly [K in EventKind]: z.ZodType<{ readonly kind: K }> };
type EventSchema = (typeof schemas)[EventKind];

export const TaskEventSchema = z.discriminatedUnion(
  'kind',
  Object.values(schemas) as [EventSchema, ...EventSchema[]],
);

export type TaskEvent = z.infer<typeof TaskEventSchema>;
export type EventOf<K extends EventKind> = Extract<TaskEvent, { kind: K }>;

/** An event as the log gave it back: with its sequence and the server's time of storing it (ms since 1970). */
export interface Recorded<E extends TaskEvent = TaskEvent> {
  readonly seq: number;
  readonly storedAt: number;
  readonly event: E;
}

/** The subject token of an event kind, e.g. `retry_claimed`. */
export const eventToken = (kind: EventKind): string => kind.toLowerCase();

/** The contract's version that a task needs, when the facts say nothing else. */
export const FIRST_VERSION = 1;
