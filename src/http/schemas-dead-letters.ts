import { z } from 'zod';
import { DeadLetterReasonSchema, TaskErrorSchema } from '../domain/events.ts';
import { NameSchema, PrioritySchema, TaskIdSchema } from '../domain/names.ts';
import { LETTER_STATES } from '../query/dead-letters.ts';

/** Names a group: deaths whose errors have the same shape. */
export const FingerprintSchema = z.string().regex(/^[0-9a-f]{16}$/, 'use 16 hexadecimal digits');

const instant = z.iso.datetime();

/** A task that died, and what became of it since. */
export const LetterSchema = z.object({
  id: TaskIdSchema,
  tenant: NameSchema,
  type: NameSchema,
  state: z.enum(LETTER_STATES),
  reason: DeadLetterReasonSchema,
  fingerprint: FingerprintSchema,
  error: TaskErrorSchema.nullable().describe('The last failure; null when no attempt had failed'),
  worker: z.string().nullable(),
  workerVersion: z.string().nullable(),
  priority: PrioritySchema,
  attempt: z.int().describe('Over all rounds'),
  round: z.int(),
  firstFailedAt: instant.nullable(),
  firstDeadAt: instant,
  deadAt: instant,
  settledAt: instant.nullable(),
  settledBy: z.string().nullable().describe('Who replayed or discarded it'),
  note: z.string().nullable(),
  seq: z.int(),
});
/** Deaths of one type that have their fingerprint in common, over the tenants that the key may read. */
export const GroupSchema = z.object({
  type: NameSchema,
  fingerprint: FingerprintSchema,
  errorName: z.string(),
  shape: z.string().describe('The message without what differs from one occurrence to the next'),
  open: z.int(),
  replayed: z.int(),
  discarded: z.int(),
  deaths: z.int().describe('Ever: a task that died in two rounds counts twice'),
  firstSeenAt: instant,
  lastSeenAt: instant,
  tenants: z.array(z.object({ tenant: NameSchema, open: z.int() })),
  sample: z.object({ id: TaskIdSchema, tenant: NameSchema, message: z.string() }),
});
