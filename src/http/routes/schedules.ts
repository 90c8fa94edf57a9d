import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import type { Json } from '../../domain/json.ts';
import { checkJson } from '../../intake/json-check.ts';
import { checkedSlots } from '../../schedules/definition.ts';
import { type Definition, DefinitionSchema } from '../../schedules/schedule.ts';
import { readableTenant } from '../auth.ts';
import { checkedBody } from '../checked-body.ts';
import { taskBodyLimit } from '../limits.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute, parse } from '../route.ts';
import {
  changeOf,
  namedSchedule,
  SCHEDULE_READ_ERRORS,
  SCHEDULE_WRITE_ERRORS,
  ScheduleParams,
  ScheduleTenant,
  ScheduleViewSchema,
  scheduleView,
} from '../schedule-view.ts';

/** What is defined of schedules; what is done with one is in schedule-commands.ts, its slots in schedule-slots.ts. */
export function scheduleRoutes(app: FastifyInstance, parts: HttpParts): void {
  listSchedules(app, parts);
  readSchedule(app, parts);
  putSchedule(app, parts);
  removeSchedule(app, parts);
}

function listSchedules(app: FastifyInstance, { schedules, registry, clock }: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/schedules',
    scope: 'read',
    tag: 'schedules',
    summary: 'List schedules',
    query: ScheduleTenant,
    responses: { 200: z.object({ schedules: z.array(ScheduleViewSchema) }) },
    errors: ['name_invalid', 'tenant_forbidden', 'tenant_unknown'],
    async handler({ identity, query: { tenant } }) {
      const found = schedules.list(readableTenant(identity, tenant, registry.tenants));
      return { schedules: found.map((each) => scheduleView(each, clock.now())) };
    },
  });
}

function readSchedule(app: FastifyInstance, parts: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/schedules/:name',
    scope: 'read',
    tag: 'schedules',
    summary: 'Read a schedule',
    params: ScheduleParams,
    query: ScheduleTenant,
    responses: { 200: ScheduleViewSchema },
    errors: SCHEDULE_READ_ERRORS,
    handler: async (asked) => scheduleView(namedSchedule(parts, asked), parts.clock.now()),
  });
}

function putSchedule(app: FastifyInstance, parts: HttpParts): void {
  const { config, schedules, clock, logger } = parts;
  addRoute(app, {
    method: 'PUT',
    url: '/v1/schedules/:name',
    scope: 'submit',
    tag: 'schedules',
    summary: 'Make a schedule, or replace it',
    description:
      'Every slot becomes one task. A changed timing has slots from now on only; the same definition again changes nothing.',
    params: ScheduleParams,
    query: ScheduleTenant,
    body: DefinitionSchema,
    bodyLimit: taskBodyLimit(config),
    responses: { 200: ScheduleViewSchema, 201: ScheduleViewSchema.describe('It is new') },
    errors: [
      ...SCHEDULE_WRITE_ERRORS,
      'schedule_invalid',
      'payload_too_large',
      'payload_too_deep',
      'payload_has_nul',
      'payload_has_invalid_unicode',
    ],
    async handler(asked) {
      const change = changeOf(parts, asked);
      const definition = definitionIn(asked.body, parts);
      const isNew = schedules.get(change) === undefined;
      const schedule = await schedules.put(change, definition);
      logger.info({ by: asked.identity.id, tenant: change.tenant, schedule: change.name }, 'schedule put');
      return asked.reply.code(isNew ? 201 : 200).send(scheduleView(schedule, clock.now()));
    },
  });
}

function removeSchedule(app: FastifyInstance, parts: HttpParts): void {
  const { schedules, logger } = parts;
  addRoute(app, {
    method: 'DELETE',
    url: '/v1/schedules/:name',
    scope: 'submit',
    tag: 'schedules',
    summary: 'Remove a schedule; its tasks stay',
    params: ScheduleParams,
    query: ScheduleTenant,
    responses: { 204: z.null() },
    errors: [...SCHEDULE_WRITE_ERRORS, 'schedule_not_found'],
    async handler(asked) {
      const change = changeOf(parts, asked);
      await schedules.remove(change);
      logger.info(
        { by: asked.identity.id, tenant: change.tenant, schedule: change.name },
        'schedule removed',
      );
      return asked.reply.code(204).send();
    },
  });
}

/** The payload has the limits of a task's, the rest those of any body. Throws also for a timing that has no slots. */
function definitionIn(body: unknown, { config, clock }: HttpParts): Definition {
  const { payload, ...rest } = (body ?? {}) as Readonly<Record<string, unknown>>;
  if (payload === undefined)
    throw new TaskledgerError('request_invalid', {
      field: 'payload',
      reason: 'payload is missing; send null for tasks without one',
    });
  const limits = { maxBytes: config.maxPayloadBytes, maxDepth: config.maxPayloadDepth };
  const unfit = checkJson(payload, 'payload', limits);
  if (unfit !== undefined) throw unfit.error;
  checkedBody(z.unknown(), rest);
  const definition = parse(DefinitionSchema, body);
  checkedSlots(definition, clock.now());
  return { ...definition, payload: payload as Json };
}
