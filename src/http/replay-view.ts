import { z } from 'zod';
import { ActorSchema } from '../domain/events.ts';
import { NameSchema, TaskIdSchema } from '../domain/names.ts';
import { OPERATION_STATES, type Operation } from '../operations/operation.ts';
import { inputOf } from '../operations/replay-letters.ts';

/** Dead letters are counted no further than this before a replay begins. */
export const MOST_COUNTED = 100_000;

const instant = z.iso.datetime();
export const ReplaySchema = z.object({
  id: TaskIdSchema,
  tenant: NameSchema.nullable().describe('Null: all tenants'),
  state: z.enum(OPERATION_STATES),
  targets: z.union([
    z.object({ ids: z.array(TaskIdSchema) }),
    z.object({ filter: z.record(z.string(), z.unknown()) }),
  ]),
  note: z.string().nullable(),
  edited: z.array(z.enum(['payload', 'policy'])),
  ratePerSecond: z.number().nullable(),
  expected: z
    .int()
    .nullable()
    .describe(
      `Found at the start, up to ${MOST_COUNTED}; what others settle before its turn is not looked at`,
    ),
  progress: z.object({
    matched: z.int().describe('Looked at so far'),
    replayed: z.int(),
    skipped: z.int().describe('Under way again already, discarded, or died again since'),
    failed: z.int(),
    failures: z.array(z.object({ taskId: z.string(), code: z.string(), message: z.string() })),
  }),
  actor: ActorSchema,
  changedBy: ActorSchema.nullable().describe('Who paused, resumed or aborted it last'),
  createdAt: instant,
  updatedAt: instant,
});

/** A replay as a client sees it: what was asked for in the words of the request, without the edited payload itself. */
export function replayView(operation: Operation) {
  const { id, tenant, state, ratePerSecond, expected, actor, changedBy, createdAt, updatedAt } = operation;
  const { targets, note, payload, policy } = inputOf(operation);
  const { matched, outcomes, failures } = operation.progress;
  const count = (outcome: string): number => outcomes[outcome] ?? 0;
  return {
    id,
    tenant,
    state,
    targets,
    note: note ?? null,
    edited: [...(payload === undefined ? [] : ['payload']), ...(policy === undefined ? [] : ['policy'])],
    ratePerSecond,
    expected,
    progress: {
      matched,
      replayed: count('replayed'),
      skipped: count('skipped'),
      failed: count('failed'),
      failures,
    },
    actor,
    changedBy,
    createdAt,
    updatedAt,
  };
}
