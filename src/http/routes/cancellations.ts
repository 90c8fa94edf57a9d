import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import { StatusSchema } from '../../domain/events.ts';
import { NameSchema, TaskIdSchema } from '../../domain/names.ts';
import { CANCEL_TASKS, CANCELLABLE, type CancelInput } from '../../operations/cancel-tasks.ts';
import { WISHES, type Wish } from '../../operations/operation.ts';
import { actorOf, readableTenant, tenantParameter } from '../auth.ts';
import { checkStorable } from '../checked-body.ts';
import { instantOf } from '../instants.ts';
import { operationInSight, operationView, operationViewSchema } from '../operation-view.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute, parse } from '../route.ts';
import { TaskViewSchema } from '../schemas.ts';

/** As far as targets are counted before the work begins. */
const MOST_COUNTED = 100_000;
const SAMPLE = 10;
const WAIT_MS = 5_000;
const OUTCOMES = ['cancelled', 'requested', 'skipped'] as const;

const instant = z.union([z.int(), z.string()]).optional();
const Body = z.strictObject({
  filter: z
    .strictObject({
      tenant: NameSchema.optional().describe("For operators' keys; all tenants when absent"),
      type: NameSchema.optional(),
      status: z.array(StatusSchema.extract(CANCELLABLE)).min(1).optional(),
      submittedFrom: instant.describe('ISO 8601 with a zone, or ms since 1970; inclusive'),
      submittedTo: instant.describe('Exclusive'),
    })
    .describe('At least one of them'),
  reason: z.string().trim().min(1).max(1_000),
  ratePerSecond: z.number().positive().max(100_000).optional(),
  dryRun: z.boolean().optional(),
});
const View = operationViewSchema(OUTCOMES);
const DryRun = z.object({
  dryRun: z.literal(true),
  count: z.int(),
  atLeast: z.boolean().describe(`True: there are ${MOST_COUNTED} or more`),
  sample: z.array(TaskViewSchema).describe('The newest of them'),
});
const IdParams = z.strictObject({ id: TaskIdSchema });

const WISH_SUMMARIES = {
  pause: 'Pause a cancellation between two pages',
  resume: 'Let a paused cancellation go on',
  abort: 'End a cancellation; what was cancelled stays so',
} as const;

/** Cancellation of everything that a filter finds: waiting tasks at once, running ones by request. */
export function cancellationRoutes(app: FastifyInstance, parts: HttpParts): void {
  beginCancellation(app, parts);
  listCancellations(app, parts);
  readCancellation(app, parts);
  for (const wish of WISHES) controlCancellation(app, parts, wish);
}

function beginCancellation(app: FastifyInstance, parts: HttpParts): void {
  const { operations, registry, query, log, logger } = parts;
  addRoute(app, {
    method: 'POST',
    url: '/v1/cancellations',
    scope: 'admin',
    tag: 'operations',
    summary: 'Cancel all tasks that a filter finds; with dryRun only count them',
    description:
      'Answers 202 with an object that shows the progress and goes on whatever becomes of the API process. ' +
      'Tasks submitted after this request are left alone. ' +
      'Of running tasks the cancellation is requested: their workers end them.',
    body: Body,
    responses: { 202: View, 200: DryRun },
    errors: [
      'name_invalid',
      'tenant_forbidden',
      'tenant_unknown',
      'run_at_invalid',
      'payload_has_nul',
      'payload_has_invalid_unicode',
      'read_model_unavailable',
      'position_not_reached',
      'log_unavailable',
    ],
    async handler({ identity, body, reply }) {
      const { filter: asked, reason, ratePerSecond, dryRun } = cancellationIn(body);
      const tenant = readableTenant(identity, asked.tenant, registry.tenants);
      const filter = filterOf(asked);
      const { lastSeq } = await log.bounds();
      await query.waitFor(lastSeq, WAIT_MS);
      const all = { ...filter, status: filter.status ?? CANCELLABLE, tenant };
      const { value: count } = await query.countTasks(all, MOST_COUNTED);
      if (dryRun) {
        const { value } = await query.tasks(all, { limit: SAMPLE });
        return { dryRun: true, count, atLeast: count === MOST_COUNTED, sample: value.items };
      }
      const operation = await operations.begin({
        kind: CANCEL_TASKS,
        tenant: tenant ?? null,
        input: { filter, reason },
        actor: actorOf(identity),
        ratePerSecond,
        asOf: lastSeq,
        expected: count,
      });
      logger.info({ by: identity.id, operation: operation.id, tenant, filter, count }, 'cancellation begun');
      return reply
        .code(202)
        .header('location', `/v1/cancellations/${operation.id}`)
        .send(operationView(operation, OUTCOMES));
    },
  });
}

function listCancellations(app: FastifyInstance, { operations, registry }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/cancellations',
    scope: 'read',
    tag: 'operations',
    summary: 'List cancellations, newest first',
    query: z.strictObject(tenantParameter),
    responses: { 200: z.object({ cancellations: z.array(View) }) },
    errors: ['name_invalid', 'tenant_forbidden', 'tenant_unknown'],
    async handler({ identity, query: { tenant } }) {
      const of = readableTenant(identity, tenant, registry.tenants);
      const found = operations.list({ kind: CANCEL_TASKS, tenant: of });
      return { cancellations: found.map((each) => operationView(each, OUTCOMES)) };
    },
  });
}

function readCancellation(app: FastifyInstance, { operations }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/cancellations/:id',
    scope: 'read',
    tag: 'operations',
    summary: 'Read the progress of a cancellation',
    params: IdParams,
    responses: { 200: View },
    errors: ['operation_not_found', 'log_unavailable'],
    handler: async ({ identity, params: { id } }) =>
      operationView(await operationInSight(operations, { id, kind: CANCEL_TASKS, identity }), OUTCOMES),
  });
}

function controlCancellation(app: FastifyInstance, { operations, logger }: HttpParts, wish: Wish): void {
  addRoute(app, {
    method: 'POST',
    url: `/v1/cancellations/:id/${wish}`,
    scope: 'admin',
    tag: 'operations',
    summary: WISH_SUMMARIES[wish],
    params: IdParams,
    responses: { 200: View },
    errors: ['operation_not_found', 'operation_ended', 'log_unavailable'],
    async handler({ identity, params: { id } }) {
      await operationInSight(operations, { id, kind: CANCEL_TASKS, identity });
      logger.info({ by: identity.id, operation: id, wish }, 'cancellation changed');
      return operationView(await operations.control(id, wish, actorOf(identity)), OUTCOMES);
    },
  });
}

/** Throws what is wrong with the body of a request for a cancellation. */
function cancellationIn(body: unknown): z.infer<typeof Body> {
  const given = parse(Body, body ?? {});
  checkStorable(given.reason, 'reason');
  if (Object.keys(given.filter).length === 0)
    throw new TaskledgerError('request_invalid', {
      field: 'filter',
      reason: 'filter names nothing: give at least one of its fields',
    });
  return given;
}

/** Throws `run_at_invalid`. */
function filterOf(asked: z.infer<typeof Body>['filter']): CancelInput['filter'] {
  const submittedFrom = instantOf('submittedFrom', asked.submittedFrom);
  const submittedTo = instantOf('submittedTo', asked.submittedTo);
  return {
    ...(asked.type === undefined ? {} : { type: asked.type }),
    ...(asked.status === undefined ? {} : { status: asked.status }),
    ...(submittedFrom === undefined ? {} : { submittedFrom }),
    ...(submittedTo === undefined ? {} : { submittedTo }),
  };
}
