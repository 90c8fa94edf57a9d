import { z } from 'zod';
import { TaskledgerError } from '../domain/errors.ts';
import { ActorSchema } from '../domain/events.ts';
import { NameSchema, TaskIdSchema } from '../domain/names.ts';
import { OPERATION_STATES, type Operation, OperationSchema } from '../operations/operation.ts';
import type { Operations } from '../operations/operations.ts';
import type { KeyIdentity } from '../registry/keys.ts';
import { isOperator } from './auth.ts';

/** A bulk operation as a client sees it; `outcomes` are the counts that its kind has, each from the beginning. */
export const operationViewSchema = (outcomes: readonly string[]) =>
  z.object({
    id: TaskIdSchema,
    tenant: NameSchema.nullable().describe('Null: tasks of all tenants'),
    input: z.unknown(),
    actor: ActorSchema,
    createdAt: z.iso.datetime(),
    updatedAt: z.iso.datetime(),
    ratePerSecond: z.number().nullable(),
    state: z.enum(OPERATION_STATES),
    changedBy: ActorSchema.nullable().describe('Who paused, resumed or aborted it last'),
    progress: z.object({
      expected: z.int().nullable().describe('Targets there were at the start, 100000 at most'),
      matched: z.int().describe('Targets looked at so far'),
      ...Object.fromEntries([...outcomes, 'failed'].map((name) => [name, z.int()])),
    }),
    failures: OperationSchema.shape.progress.shape.failures.describe('The last of them'),
  });

/** What `operationViewSchema` of the same outcomes shows. */
export function operationView(operation: Operation, outcomes: readonly string[]) {
  const { id, tenant, input, actor, createdAt, updatedAt, ratePerSecond, state, changedBy, progress } =
    operation;
  const zeros = Object.fromEntries([...outcomes, 'failed'].map((name) => [name, 0]));
  const { expected } = operation;
  return {
    id,
    tenant,
    input,
    actor,
    createdAt,
    updatedAt,
    ratePerSecond,
    state,
    changedBy,
    progress: { expected, matched: progress.matched, ...zeros, ...progress.outcomes },
    failures: progress.failures,
  };
}

/** An operation of this kind that the key may see. Throws `operation_not_found`, also for another tenant's. */
export async function operationInSight(
  operations: Operations,
  wanted: { readonly id: string; readonly kind: string; readonly identity: KeyIdentity },
): Promise<Operation> {
  const { id, kind, identity } = wanted;
  const found = await operations.get(id);
  const mine = isOperator(identity) || found?.tenant === identity.tenant;
  if (found === undefined || found.kind !== kind || !mine)
    throw new TaskledgerError('operation_not_found', { operationId: id });
  return found;
}
