import { z } from 'zod';
import {
  ActorSchema,
  DeadLetterReasonSchema,
  LostReasonSchema,
  ScheduledSchema,
  TaskErrorSchema,
  TaskKeySchema,
  VersionSchema,
} from './events.ts';
import { JsonSchema } from './json.ts';
import { NameSchema, PrioritySchema, TaskIdSchema } from './names.ts';
import { PolicyOverrideSchema } from './policy.ts';

/**
 * Commands: what somebody wants to happen to a task. Version 1.
 *
 * Time, ids and dice come in with the command, so that `decide` is pure: the same state and the same command always
 * give the same event.
 */
export const COMMAND_VERSION = 1;

const instant = z.int().min(0);

/** Carried by every command. `eventId` becomes the id of the event; `at` is the caller's clock in ms since 1970. */
const meta = {
  v: z.literal(COMMAND_VERSION).optional(),
  eventId: TaskIdSchema,
  at: instant,
  actor: ActorSchema,
  trace: z.string().max(100).optional(),
};

/** Uniform in [0, 1): the jitter of the retry that may follow. */
const dice = z.number().min(0).lt(1);
const firstEvent = { taskId: TaskIdSchema, tenant: NameSchema, type: NameSchema };

const ingest = z.strictObject({
  ...meta,
  ...firstEvent,
  kind: z.literal('ingest'),
  payload: JsonSchema,
  priority: PrioritySchema,
  fingerprint: z.string().optional(),
  idempotencyKey: z.string().max(255).optional(),
  policy: PolicyOverrideSchema.optional(),
  runAt: instant.optional(),
  deadlineAt: instant.optional(),
  version: VersionSchema.optional(),
  schedule: ScheduledSchema.optional(),
  orderingKey: TaskKeySchema.optional(),
  concurrencyKey: TaskKeySchema.optional(),
  debounce: z.strictObject({ key: TaskKeySchema, until: instant, at: instant }).optional(),
  throttle: z.strictObject({ key: TaskKeySchema, windowMs: z.int().min(1) }).optional(),
});
const reject = z.strictObject({
  ...meta,
  ...firstEvent,
  kind: z.literal('reject'),
  reasons: z
    .array(z.strictObject({ code: z.string(), field: z.string().optional(), message: z.string() }))
    .min(1),
});
/**
 * `inlinePayload`: whether the payload is small enough to ride in the QUEUED event. `pardon`: the attempt whose lease was
 * lost last does not count, because leases were lost all over the fleet.
 */
const queue = z.strictObject({
  ...meta,
  kind: z.literal('queue'),
  inlinePayload: z.boolean(),
  pardon: z.boolean().optional(),
});
/** Announces a work item again that nobody can see any more, or will not before long. */
const requeue = z.strictObject({ ...meta, kind: z.literal('requeue') });
const claim = z.strictObject({ ...meta, kind: z.literal('claim') });
const start = z.strictObject({ ...meta, kind: z.literal('start'), attempt: z.int().min(1) });
const complete = z.strictObject({
  ...meta,
  kind: z.literal('complete'),
  attempt: z.int().min(1),
  result: JsonSchema.optional(),
  runMs: z.int().min(0).optional(),
});
/** `final` overrides the retry policy: the attempt says that trying again cannot help, or the deadline has passed. */
const fail = z.strictObject({
  ...meta,
  kind: z.literal('fail'),
  attempt: z.int().min(1),
  error: TaskErrorSchema,
  final: DeadLetterReasonSchema.optional(),
  runMs: z.int().min(0).optional(),
  workerVersion: z.string().max(100).optional(),
  dice,
});
const lose = z.strictObject({
  ...meta,
  kind: z.literal('lose'),
  attempt: z.int().min(1),
  reason: LostReasonSchema,
  dice,
});
const deadLetter = z.strictObject({ ...meta, kind: z.literal('dead_letter') });
const requestCancel = z.strictObject({
  ...meta,
  kind: z.literal('request_cancel'),
  reason: z.string().max(1_000).optional(),
});
/** A requested cancellation has taken effect. */
const cancel = z.strictObject({
  ...meta,
  kind: z.literal('cancel'),
  reason: z.string().max(1_000).optional(),
});
const replay = z.strictObject({
  ...meta,
  kind: z.literal('replay'),
  note: z.string().max(1_000).optional(),
  payload: JsonSchema.optional(),
  policy: PolicyOverrideSchema.optional(),
});
const discard = z.strictObject({ ...meta, kind: z.literal('discard'), reason: z.string().min(1).max(1_000) });
/** Another priority, another time, or both. `runAt` null: do not wait for a time any longer, a retry's backoff included. */
const reschedule = z.strictObject({
  ...meta,
  kind: z.literal('reschedule'),
  priority: PrioritySchema.optional(),
  runAt: instant.nullable().optional(),
});
/**
 * The debounce key of a waiting task was submitted again, at `submittedAt` by the servers' clock: the task gets the new
 * payload and waits `windowMs` from then. `once`: the submission may come a second time, after others of its key.
 */
const debounce = z.strictObject({
  ...meta,
  kind: z.literal('debounce'),
  payload: JsonSchema,
  priority: PrioritySchema,
  submittedAt: instant,
  windowMs: z.int().min(1),
  once: z.boolean(),
});
const carry = z.strictObject({ ...meta, kind: z.literal('carry') });

export const CommandSchema = z.discriminatedUnion('kind', [
  ingest,
  reject,
  queue,
  requeue,
  claim,
  start,
  complete,
  fail,
  lose,
  deadLetter,
  requestCancel,
  cancel,
  replay,
  discard,
  reschedule,
  debounce,
  carry,
]);

export type Command = z.infer<typeof CommandSchema>;
export type CommandOf<K extends Command['kind']> = Extract<Command, { kind: K }>;
