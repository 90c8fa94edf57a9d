import { randomUUID } from 'node:crypto';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import { StatusSchema } from '../../domain/events.ts';
import { PrioritySchema, TaskIdSchema } from '../../domain/names.ts';
import { parseInstant } from '../../intake/instants.ts';
import { type Executed, execute } from '../../log/handle.ts';
import type { Query } from '../../query/query.ts';
import type { KeyIdentity } from '../../registry/keys.ts';
import { actorOf, tenantParameter, writableTenant } from '../auth.ts';
import { checkStorable } from '../checked-body.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute, parse } from '../route.ts';

const TaskParams = z.strictObject({ id: TaskIdSchema });
const COMMAND_ERRORS = [
  'tenant_forbidden',
  'tenant_unknown',
  'task_not_found',
  'task_terminal',
  'cancel_pending',
  'append_conflict',
  'log_unavailable',
] as const;

const CancelBody = z.strictObject({ reason: z.string().max(1_000).optional() });
const Cancelled = z.object({
  id: TaskIdSchema,
  event: z.enum(['CANCELLED', 'CANCEL_REQUESTED']),
  status: StatusSchema,
  seq: z.int(),
});
const RescheduleBody = z.strictObject({
  priority: PrioritySchema.optional(),
  runAt: z
    .union([z.int(), z.string()])
    .nullable()
    .optional()
    .describe('ISO 8601 with a zone, or ms since 1970; null: no longer wait for a time'),
  delayMs: z.int().min(0).optional().describe('Instead of runAt: so long from now'),
});
const Rescheduled = z.object({
  id: TaskIdSchema,
  status: StatusSchema,
  priority: PrioritySchema,
  dueAt: z.iso.datetime().nullable(),
  seq: z.int(),
});

interface Asked {
  readonly identity: KeyIdentity;
  readonly request: FastifyRequest;
  readonly tenant: string | undefined;
  readonly id: string;
}
type Wanted =
  | { readonly kind: 'request_cancel'; readonly reason: string | undefined }
  | {
      readonly kind: 'reschedule';
      readonly priority: number | undefined;
      readonly runAt: number | null | undefined;
    };

/** What can be asked of a task; each answer follows from one event. */
export function taskCommandRoutes(app: FastifyInstance, parts: HttpParts): void {
  cancelTask(app, parts);
  rescheduleTask(app, parts);
}

function cancelTask(app: FastifyInstance, parts: HttpParts): void {
  addRoute(app, {
    method: 'POST',
    url: '/v1/tasks/:id/cancel',
    scope: 'submit',
    tag: 'tasks',
    summary: 'Cancel a task',
    description:
      'A waiting task is cancelled at once. A running one gets CANCEL_REQUESTED: its worker aborts the attempt and confirms with CANCELLED.',
    params: TaskParams,
    query: z.strictObject(tenantParameter),
    body: CancelBody.optional(),
    responses: { 200: Cancelled },
    errors: COMMAND_ERRORS,
    async handler({ identity, params: { id }, query: { tenant }, body, request, reply }) {
      const { reason } = parse(CancelBody, body ?? {});
      if (reason !== undefined) checkStorable(reason, 'reason');
      const asked = { identity, request, tenant, id };
      const { event, seq, state } = await command(parts, asked, { kind: 'request_cancel', reason });
      reply.header('taskledger-position', seq);
      return { id, event: event.kind, status: state.status, seq };
    },
  });
}

function rescheduleTask(app: FastifyInstance, parts: HttpParts): void {
  addRoute(app, {
    method: 'PATCH',
    url: '/v1/tasks/:id',
    scope: 'submit',
    tag: 'tasks',
    summary: 'Change the priority or the due time of a waiting task',
    description:
      'Only while it waits: a task that is QUEUED or runs was already handed to the workers and answers 409. ' +
      '`runAt` in the past or null lets it run as soon as its turn comes, the backoff of a retry included.',
    params: TaskParams,
    query: z.strictObject(tenantParameter),
    body: RescheduleBody,
    responses: { 200: Rescheduled },
    errors: [...COMMAND_ERRORS, 'task_handed_out', 'retries_exhausted', 'run_at_invalid'],
    async handler({ identity, params: { id }, query: { tenant }, body, request, reply }) {
      const { priority, runAt } = changeOf(body, parts.clock.now());
      const asked = { identity, request, tenant, id };
      const { seq, state } = await command(parts, asked, { kind: 'reschedule', priority, runAt });
      reply.header('taskledger-position', seq);
      const dueAt = state.dueAt === undefined ? null : new Date(state.dueAt).toISOString();
      return { id, status: state.status, priority: state.priority, dueAt, seq };
    },
  });
}

async function command(
  { query, registry, log, clock }: HttpParts,
  { identity, request, tenant, id }: Asked,
  wanted: Wanted,
): Promise<Executed> {
  const of = writableTenant(identity, tenant, registry.tenants);
  const { traceparent } = request.headers;
  const result = await execute(log, { tenant: of, taskId: id }, () => ({
    ...wanted,
    eventId: randomUUID(),
    at: clock.now(),
    actor: actorOf(identity),
    ...(typeof traceparent === 'string' && traceparent.length <= 100 ? { trace: traceparent } : {}),
  }));
  if (!result.ok) throw result.error.code === 'task_missing' ? await whyMissing(query, of, id) : result.error;
  return result.value;
}

/** A task that the hot window has forgotten has ended; the read model may still know how. */
async function whyMissing(query: Query, tenant: string, taskId: string): Promise<TaskledgerError> {
  const { value } = await query.task(tenant, taskId);
  return value === undefined
    ? new TaskledgerError('task_not_found', { taskId })
    : new TaskledgerError('task_terminal', { taskId, status: value.status });
}

/** Throws `request_invalid` or `run_at_invalid`. */
function changeOf(body: unknown, now: number) {
  const { priority, runAt, delayMs } = parse(RescheduleBody, body ?? {});
  if (runAt !== undefined && delayMs !== undefined)
    throw new TaskledgerError('request_invalid', {
      field: 'delayMs',
      reason: 'Send runAt or delayMs, not both',
    });
  if (priority === undefined && runAt === undefined && delayMs === undefined)
    throw new TaskledgerError('request_invalid', {
      field: 'body',
      reason: 'Send priority, runAt or delayMs',
    });
  if (delayMs !== undefined) return { priority, runAt: now + delayMs };
  if (runAt === undefined || runAt === null) return { priority, runAt };
  const at = parseInstant(runAt);
  if (at === undefined)
    throw new TaskledgerError('run_at_invalid', {
      field: 'runAt',
      value: JSON.stringify(runAt).slice(0, 80),
    });
  return { priority, runAt: at };
}
