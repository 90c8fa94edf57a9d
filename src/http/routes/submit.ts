import { isUtf8 } from 'node:buffer';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import type { SubmitOutcome } from '../../intake/outcome.ts';
import { TaskInputSchema } from '../../intake/submission.ts';
import type { KeyIdentity } from '../../registry/keys.ts';
import type { Registry } from '../../registry/registry.ts';
import { actorOf, writableTenant } from '../auth.ts';
import { errorBody } from '../errors.ts';
import { batchBodyLimit, taskBodyLimit } from '../limits.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute } from '../route.ts';
import { BatchResultSchema, SubmittedSchema } from '../schemas.ts';

const RETRY_AFTER_S = 2;

const SUBMISSION_ERRORS = [
  'payload_not_json',
  'payload_too_large',
  'payload_too_deep',
  'payload_has_nul',
  'payload_has_invalid_unicode',
  'payload_number_out_of_range',
  'payload_key_forbidden',
  'name_invalid',
  'run_at_invalid',
  'unsupported_media_type',
  'tenant_forbidden',
  'tenant_unknown',
  'backlog_full',
  'delayed_full',
  'tenant_backlog_full',
  'submission_rate_limited',
  'log_unavailable',
] as const;

export function submitRoutes(app: FastifyInstance, parts: HttpParts): void {
  submitOne(app, parts);
  submitMany(app, parts);
}

function submitOne(app: FastifyInstance, { config, intake, registry }: HttpParts): void {
  addRoute(app, {
    method: 'POST',
    url: '/v1/tasks',
    scope: 'submit',
    tag: 'tasks',
    summary: 'Submit a task',
    description:
      'A repeat with the same idempotency key, type and payload answers 200 with the original and `Idempotency-Replayed: true`. ' +
      'Give the key as `Idempotency-Key`, `idempotencyKey` or `id`. Keys are remembered for the hot window. ' +
      'With `throttle` or `debounce` many submissions of a key become one task: those that made none answer 200 with its id and `deduplicated`.',
    headers: z.object({ 'idempotency-key': z.string().optional(), traceparent: z.string().optional() }),
    body: TaskInputSchema,
    bodyLimit: taskBodyLimit(config),
    responses: { 201: SubmittedSchema, 200: SubmittedSchema.describe('The task existed already') },
    errors: [...SUBMISSION_ERRORS, 'idempotency_conflict'],
    async handler({ identity, body, request, reply }) {
      const outcome = await intake.submit(tenantFor(identity, body, registry), body, {
        actor: actorOf(identity),
        trace: headerOf(request.headers['traceparent']),
        idempotencyKey: utf8(headerOf(request.headers['idempotency-key'])),
      });
      if (!outcome.ok) {
        tellWhenAgain(reply, [outcome.error]);
        return reply.code(outcome.error.status).send(errorBody(outcome.error, request.id, outcome.reasons));
      }
      const { id, status, seq, replayed, deduplicated } = outcome;
      const existed = replayed || deduplicated !== undefined;
      if (replayed && deduplicated === undefined) reply.header('idempotency-replayed', 'true');
      return reply
        .code(existed ? 200 : 201)
        .header('location', `/v1/tasks/${id}`)
        .header('taskledger-position', seq)
        .send({ id, status, seq, replayed, ...(deduplicated === undefined ? {} : { deduplicated }) });
    },
  });
}

function submitMany(app: FastifyInstance, { config, intake, registry }: HttpParts): void {
  addRoute(app, {
    method: 'POST',
    url: '/v1/tasks/batch',
    scope: 'submit',
    tag: 'tasks',
    summary: 'Submit many tasks in one request',
    description:
      'Each task succeeds or fails on its own: the answer is 200 with one result a task, in order. ' +
      'Only a batch that cannot be read as a whole is refused as a whole. ' +
      `It may have up to ${config.maxBatchTasks} tasks (TASKLEDGER_MAX_BATCH).`,
    body: z.union([z.array(TaskInputSchema), z.strictObject({ tasks: z.array(TaskInputSchema) })]),
    bodyLimit: batchBodyLimit(config),
    responses: { 200: BatchResultSchema },
    errors: [...SUBMISSION_ERRORS, 'batch_too_large'],
    async handler({ identity, body, request, reply }) {
      const tasks = tasksOf(body, config.maxBatchTasks);
      const context = { actor: actorOf(identity), trace: headerOf(request.headers['traceparent']) };
      const outcomes = await Promise.all(
        tasks.map((task) =>
          orRefused(() => intake.submit(tenantFor(identity, task, registry), task, context)),
        ),
      );
      tellWhenAgain(
        reply,
        outcomes.flatMap((outcome) => (outcome.ok ? [] : [outcome.error])),
      );
      return { results: outcomes.map(resultOf) };
    },
  });
}

/** Operators may mix tenants in a batch; a tenant that is not theirs fails its own tasks only. */
async function orRefused(submit: () => Promise<SubmitOutcome>): Promise<SubmitOutcome> {
  try {
    return await submit();
  } catch (error) {
    if (error instanceof TaskledgerError) return { ok: false, error, reasons: [] };
    throw error;
  }
}

function resultOf(outcome: SubmitOutcome, index: number) {
  if (outcome.ok) return { index, ...outcome };
  const { code, message, field, fix, retryable } = outcome.error;
  const reasons = outcome.reasons.length > 1 ? { reasons: outcome.reasons } : {};
  return {
    index,
    ok: false,
    error: { code, message, ...(field === undefined ? {} : { field }), fix, retryable, ...reasons },
  };
}

/** When what may succeed later should be sent again. A rate that is used up shows itself instead of the key's. */
function tellWhenAgain(reply: FastifyReply, errors: readonly TaskledgerError[]): void {
  const passing = errors.filter(({ retryable }) => retryable);
  if (passing.length === 0) return;
  const over = passing.find(({ code }) => code === 'submission_rate_limited');
  const { limit, retryAfterMs } = over?.details ?? {};
  const seconds = typeof retryAfterMs === 'number' ? Math.ceil(retryAfterMs / 1_000) : RETRY_AFTER_S;
  reply.header('retry-after', seconds);
  if (over === undefined) return;
  reply.header('ratelimit-limit', Number(limit)).header('ratelimit-remaining', 0);
  reply.header('ratelimit-reset', seconds);
}

/** The tenant is part of a task's input only for operators. */
function tenantFor(identity: KeyIdentity, task: unknown, { tenants }: Registry): string {
  const { tenant } = (task ?? {}) as Readonly<Record<string, unknown>>;
  // Anything else than a text is left to the validation of the task.
  return writableTenant(identity, typeof tenant === 'string' ? tenant : undefined, tenants);
}

function tasksOf(body: unknown, limit: number): readonly unknown[] {
  const tasks = Array.isArray(body) ? body : (body as { tasks?: unknown } | null | undefined)?.tasks;
  if (!Array.isArray(tasks) || (!Array.isArray(body) && Object.keys(body as object).length > 1))
    throw new TaskledgerError('request_invalid', {
      field: 'tasks',
      reason: 'Send {"tasks": [...]} or an array of tasks',
    });
  if (tasks.length === 0)
    throw new TaskledgerError('request_invalid', { field: 'tasks', reason: 'The batch is empty' });
  if (tasks.length > limit)
    throw new TaskledgerError('batch_too_large', { field: 'tasks', count: tasks.length, limit });
  return tasks;
}

const headerOf = (value: string | readonly string[] | undefined): string | undefined =>
  typeof value === 'string' ? value : value?.[0];

/** Node reads header bytes as Latin-1; a key beyond ASCII was most likely sent as UTF-8, as it would be in a body. */
function utf8(header: string | undefined): string | undefined {
  if (header === undefined || !/[\x80-\xff]/.test(header)) return header;
  const bytes = Buffer.from(header, 'latin1');
  return isUtf8(bytes) ? bytes.toString('utf8') : header;
}
