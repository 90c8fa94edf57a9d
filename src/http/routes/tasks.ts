import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import { StatusSchema } from '../../domain/events.ts';
import { NameSchema, TaskIdSchema } from '../../domain/names.ts';
import { readableTenant, tenantParameter } from '../auth.ts';
import { checkStorable } from '../checked-body.ts';
import { instantOf, instantParameter } from '../instants.ts';
import type { HttpParts } from '../parts.ts';
import { atParameter, pointOf } from '../point-in-log.ts';
import { pageParameters, READ_ERRORS, read, waitParameter } from '../reading.ts';
import { addRoute } from '../route.ts';
import { EventListSchema, TaskAnswerSchema, TaskListSchema } from '../schemas.ts';

const TaskParams = z.strictObject({ id: TaskIdSchema });

export function taskRoutes(app: FastifyInstance, parts: HttpParts): void {
  readTask(app, parts);
  listTasks(app, parts);
  listEvents(app, parts);
}

function readTask(app: FastifyInstance, { query, registry }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/tasks/:id',
    scope: 'read',
    tag: 'tasks',
    summary: 'Read a task',
    params: TaskParams,
    query: z.strictObject({ ...tenantParameter, ...waitParameter, ...atParameter }),
    responses: { 200: TaskAnswerSchema },
    errors: [...READ_ERRORS, 'task_not_found', 'point_not_kept', 'run_at_invalid'],
    async handler({ identity, params: { id }, query: { tenant, wait, at }, reply }) {
      const of = readableTenant(identity, tenant, registry.tenants);
      const { position, value } = await read(query, reply, wait, () =>
        at === undefined ? query.task(of, id) : query.taskAt(of, id, pointOf('at', at)),
      );
      if (value === undefined) throw new TaskledgerError('task_not_found', { taskId: id });
      return { position, task: value };
    },
  });
}

function listTasks(app: FastifyInstance, { query, registry }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/tasks',
    scope: 'read',
    tag: 'tasks',
    summary: 'List tasks, newest first',
    query: z.strictObject({
      ...tenantParameter,
      type: NameSchema.optional(),
      status: z
        .union([z.string(), z.array(z.string())])
        .transform((given) => [given].flat().flatMap((text) => text.split(',')))
        .pipe(z.array(StatusSchema))
        .optional()
        .describe('Repeated or comma separated'),
      worker: z.string().min(1).max(200).optional().describe('Worker incarnation of the last attempt'),
      submittedFrom: instantParameter.describe('ISO 8601 with a zone, or ms since 1970; inclusive'),
      submittedTo: instantParameter.describe('Exclusive'),
      ...pageParameters(200, 50),
      ...waitParameter,
    }),
    responses: { 200: TaskListSchema },
    errors: [...READ_ERRORS, 'name_invalid', 'cursor_invalid', 'run_at_invalid'],
    async handler({ identity, query: { wait, limit, cursor, tenant, worker, ...wanted }, reply }) {
      if (worker !== undefined) checkStorable(worker, 'worker');
      const filter = {
        tenant: readableTenant(identity, tenant, registry.tenants),
        type: wanted.type,
        status: wanted.status,
        worker,
        submittedFrom: instantOf('submittedFrom', wanted.submittedFrom),
        submittedTo: instantOf('submittedTo', wanted.submittedTo),
      };
      const { position, value } = await read(query, reply, wait, () =>
        query.tasks(filter, { limit, cursor }),
      );
      return { position, tasks: value.items, nextCursor: value.nextCursor };
    },
  });
}

function listEvents(app: FastifyInstance, { query, registry }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/tasks/:id/events',
    scope: 'read',
    tag: 'tasks',
    summary: "Read a task's transitions, oldest first",
    params: TaskParams,
    query: z.strictObject({ ...tenantParameter, ...pageParameters(1_000, 200), ...waitParameter }),
    responses: { 200: EventListSchema },
    errors: [...READ_ERRORS, 'task_not_found', 'cursor_invalid'],
    async handler({ identity, params: { id }, query: { tenant, wait, limit, cursor }, reply }) {
      const of = readableTenant(identity, tenant, registry.tenants);
      const { position, value } = await read(query, reply, wait, () =>
        query.taskEvents(of, id, { limit, cursor }),
      );
      if (value.items.length === 0 && cursor === undefined)
        throw new TaskledgerError('task_not_found', { taskId: id });
      return { position, events: value.items, nextCursor: value.nextCursor };
    },
  });
}
