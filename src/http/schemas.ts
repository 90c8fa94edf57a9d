import { z } from 'zod';
import {
  ActorSchema,
  DeadLetterReasonSchema,
  EVENT_KINDS,
  StatusSchema,
  TaskErrorSchema,
} from '../domain/events.ts';
import { NameSchema, TaskIdSchema } from '../domain/names.ts';

/** The shapes of answers, for the OpenAPI document. Instants are ISO 8601 in UTC; null means "not (yet)". */

const instant = z.iso.datetime();
const json = z.unknown();
export const Position = z.int().describe('The log sequence that the answer reflects');
const Reasons = z.array(z.object({ code: z.string(), field: z.string().optional(), message: z.string() }));

export const ErrorSchema = z.object({
  error: z.object({
    code: z.string(),
    message: z.string(),
    field: z.string().optional(),
    fix: z.string(),
    retryable: z.boolean(),
    details: z.record(z.string(), z.unknown()).optional(),
    reasons: Reasons.optional(),
    requestId: z.string(),
    doc: z.string(),
  }),
});

export const SubmittedSchema = z.object({
  id: TaskIdSchema,
  status: StatusSchema,
  seq: z.int().describe('Sequence of the INGESTED event; pass it as ?wait= to read your write'),
  replayed: z.boolean(),
  deduplicated: z
    .enum(['throttle', 'debounce'])
    .optional()
    .describe('It made no task of its own: that of its throttle or debounce key stands for it'),
});

export const BatchResultSchema = z.object({
  results: z.array(
    z.union([
      z.object({ index: z.int(), ok: z.literal(true), ...SubmittedSchema.shape }),
      z.object({
        index: z.int(),
        ok: z.literal(false),
        error: z.object({
          code: z.string(),
          message: z.string(),
          field: z.string().optional(),
          fix: z.string(),
          retryable: z.boolean(),
          reasons: Reasons.optional(),
        }),
      }),
    ]),
  ),
});

export const TaskViewSchema = z.object({
  id: TaskIdSchema,
  tenant: NameSchema,
  type: NameSchema,
  status: StatusSchema,
  priority: z.int(),
  round: z.int(),
  attempt: z.int(),
  cancelRequested: z.boolean(),
  worker: z.string().nullable(),
  payload: json,
  result: json,
  error: TaskErrorSchema.nullable(),
  deadLetterReason: DeadLetterReasonSchema.nullable(),
  rejections: Reasons.nullable(),
  idempotencyKey: z.string().nullable(),
  schedule: z.string().nullable().describe('The schedule that made the task'),
  slotAt: instant.nullable().describe('The slot of the schedule that the task is for'),
  submittedAt: instant,
  runAt: instant.nullable(),
  dueAt: instant.nullable(),
  deadlineAt: instant.nullable(),
  claimedAt: instant.nullable(),
  startedAt: instant.nullable(),
  finishedAt: instant.nullable(),
  updatedAt: instant,
  seq: z.int(),
});

export const EventViewSchema = z.object({
  seq: z.int(),
  id: TaskIdSchema,
  kind: z.enum(EVENT_KINDS),
  from: StatusSchema.nullable(),
  round: z.int(),
  attempt: z.int(),
  at: instant,
  storedAt: instant,
  actor: ActorSchema,
  data: json,
});

export const PauseViewSchema = z.object({
  tenant: NameSchema.nullable().describe('Null: of every tenant'),
  type: NameSchema.nullable().describe('Null: of every type'),
  reason: z.string(),
  until: instant.nullable().describe('Null: until somebody resumes'),
  actor: z.string(),
  at: instant,
});

const counts = z.partialRecord(StatusSchema, z.int());
export const QueueSchema = z.object({
  tenant: NameSchema,
  type: NameSchema,
  counts,
  priorities: z.array(z.object({ priority: z.int(), counts })),
  noWorkers: z
    .array(z.int())
    .describe('Versions of the type of which tasks wait although no worker is registered that can run them'),
  pauses: z.array(PauseViewSchema).describe('What keeps its tasks from being queued'),
  backlog: z
    .object({
      /** Null while the dispatcher is silent. */
      waiting: z.int().nullable(),
      limit: z.int(),
      full: z.boolean(),
      delayed: z
        .object({ waiting: z.int().nullable(), limit: z.int(), full: z.boolean() })
        .describe(
          'Tasks that wait for a time; they are no part of `waiting`, and throttle delayed submissions alone',
        ),
    })
    .describe('Of the type, over all tenants: what submission is throttled by'),
  intake: z
    .object({
      state: z.enum(['open', 'limited', 'closed']),
      reasons: z.array(
        z.object({
          code: z.enum(['backlog_full', 'tenant_backlog_full', 'submission_rate_limited']),
          sentence: z.string(),
          limit: z.number(),
          waiting: z.int().optional(),
          resumesAt: z.int().optional().describe('Waiting tasks at which it opens again'),
          retryAfterMs: z.int().optional(),
        }),
      ),
    })
    .describe(
      'Whether submissions of the tenant and type are taken: closed while a backlog is full, limited while a rate is used up (as this API process knows it)',
    ),
});

export const TaskAnswerSchema = z.object({ position: Position, task: TaskViewSchema });
export const TaskListSchema = z.object({
  position: Position,
  tasks: z.array(TaskViewSchema),
  nextCursor: z.string().nullable(),
});
export const EventListSchema = z.object({
  position: Position,
  events: z.array(EventViewSchema),
  nextCursor: z.string().nullable(),
});
export const QueueListSchema = z.object({ position: Position, queues: z.array(QueueSchema) });
