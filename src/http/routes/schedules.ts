import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import type { Json } from '../../domain/json.ts';
import { NameSchema } from '../../domain/names.ts';
import { checkJson } from '../../intake/json-check.ts';
import type { KeyIdentity } from '../../registry/keys.ts';
import { checkedSlots } from '../../schedules/definition.ts';
import {
  type Definition,
  DefinitionSchema,
  type Schedule,
  ScheduleSchema,
  slotsOfSchedule,
} from '../../schedules/schedule.ts';
import { nextSlots, type Slots } from '../../schedules/timing.ts';
import { wallText, zoneOf } from '../../schedules/zone.ts';
import { actorOf, readableTenant, tenantParameter, writableTenant } from '../auth.ts';
import { errorBody } from '../errors.ts';
import { taskBodyLimit } from '../limits.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute, parse } from '../route.ts';
import { SubmittedSchema } from '../schemas.ts';

const Name = z.strictObject({ name: NameSchema });
const OfTenant = z.strictObject(tenantParameter);
const PauseBody = z.strictObject({ reason: z.string().min(1).max(1_000).optional() });
const PreviewBody = DefinitionSchema.pick({
  cron: true,
  every: true,
  timeZone: true,
  startAt: true,
  endAt: true,
}).extend({ count: z.int().min(1).max(100).default(10) });
const SlotSchema = z.object({
  at: z.iso.datetime().describe('UTC'),
  local: z.string().describe("In the schedule's zone"),
});
const ScheduleView = z.object({
  ...ScheduleSchema.shape,
  nextAt: z.iso.datetime().nullable().describe('The next slot; null when paused or over'),
});
const SlotsView = z.object({
  timeZone: z.string(),
  timeZoneData: z.string().describe('Release of the IANA time zone data that this is calculated with'),
  slots: z.array(SlotSchema),
});

const WRITE_ERRORS = ['name_invalid', 'tenant_forbidden', 'tenant_unknown', 'log_unavailable'] as const;
const READ_ERRORS = ['name_invalid', 'tenant_forbidden', 'tenant_unknown', 'schedule_not_found'] as const;
const BODY_LIMITS = { maxBytes: 65_536, maxDepth: 8 };

export function scheduleRoutes(app: FastifyInstance, parts: HttpParts): void {
  const { config, schedules, registry, intake, clock, logger } = parts;
  const own = (identity: KeyIdentity, tenant: string | undefined, name: string) => ({
    tenant: writableTenant(identity, tenant, registry.tenants),
    name,
    by: actorOf(identity),
    now: clock.now(),
  });
  const existing = (identity: KeyIdentity, tenant: string | undefined, name: string): Schedule => {
    const key = { tenant: writableTenant(identity, tenant, registry.tenants), name };
    const schedule = schedules.get(key);
    if (schedule === undefined) throw new TaskledgerError('schedule_not_found', key);
    return schedule;
  };
  const view = (schedule: Schedule) => ({ ...schedule, nextAt: nextAt(schedule, clock.now()) });

  addRoute(app, {
    method: 'GET',
    url: '/v1/schedules',
    scope: 'read',
    tag: 'schedules',
    summary: 'List schedules',
    query: OfTenant,
    responses: { 200: z.object({ schedules: z.array(ScheduleView) }) },
    errors: ['name_invalid', 'tenant_forbidden', 'tenant_unknown'],
    handler: async ({ identity, query: { tenant } }) => ({
      schedules: schedules.list(readableTenant(identity, tenant, registry.tenants)).map(view),
    }),
  });

  addRoute(app, {
    method: 'GET',
    url: '/v1/schedules/:name',
    scope: 'read',
    tag: 'schedules',
    summary: 'Read a schedule',
    params: Name,
    query: OfTenant,
    responses: { 200: ScheduleView },
    errors: READ_ERRORS,
    handler: async ({ identity, params: { name }, query: { tenant } }) =>
      view(existing(identity, tenant, name)),
  });

  addRoute(app, {
    method: 'PUT',
    url: '/v1/schedules/:name',
    scope: 'submit',
    tag: 'schedules',
    summary: 'Make a schedule, or replace it',
    description:
      'Every slot becomes one task. A changed timing has slots from now on only; the same definition again changes nothing.',
    params: Name,
    query: OfTenant,
    body: DefinitionSchema,
    bodyLimit: taskBodyLimit(config),
    responses: { 200: ScheduleView, 201: ScheduleView.describe('It is new') },
    errors: [
      ...WRITE_ERRORS,
      'schedule_invalid',
      'payload_too_large',
      'payload_too_deep',
      'payload_has_nul',
      'payload_has_invalid_unicode',
    ],
    async handler({ identity, params: { name }, query: { tenant }, body, reply }) {
      const change = own(identity, tenant, name);
      const definition = definitionIn(body);
      const isNew = schedules.get(change) === undefined;
      const schedule = await schedules.put(change, definition);
      logger.info({ by: identity.id, tenant: change.tenant, schedule: name }, 'schedule put');
      return reply.code(isNew ? 201 : 200).send(view(schedule));
    },
  });

  addRoute(app, {
    method: 'DELETE',
    url: '/v1/schedules/:name',
    scope: 'submit',
    tag: 'schedules',
    summary: 'Remove a schedule; its tasks stay',
    params: Name,
    query: OfTenant,
    responses: { 204: z.null() },
    errors: [...WRITE_ERRORS, 'schedule_not_found'],
    async handler({ identity, params: { name }, query: { tenant }, reply }) {
      const change = own(identity, tenant, name);
      await schedules.remove(change);
      logger.info({ by: identity.id, tenant: change.tenant, schedule: name }, 'schedule removed');
      return reply.code(204).send();
    },
  });

  addRoute(app, {
    method: 'POST',
    url: '/v1/schedules/:name/pause',
    scope: 'submit',
    tag: 'schedules',
    summary: 'Stop making tasks until the schedule is resumed',
    params: Name,
    query: OfTenant,
    body: PauseBody.optional(),
    responses: { 200: ScheduleView },
    errors: [...WRITE_ERRORS, 'schedule_not_found'],
    async handler({ identity, params: { name }, query: { tenant }, body }) {
      const change = own(identity, tenant, name);
      const { reason } = checked(PauseBody, body ?? {});
      logger.info({ by: identity.id, tenant: change.tenant, schedule: name, reason }, 'schedule paused');
      return view(await schedules.pause(change, reason));
    },
  });

  addRoute(app, {
    method: 'POST',
    url: '/v1/schedules/:name/resume',
    scope: 'submit',
    tag: 'schedules',
    summary: 'Go on with the next slot; those that fell into the pause are not made up for',
    params: Name,
    query: OfTenant,
    responses: { 200: ScheduleView },
    errors: [...WRITE_ERRORS, 'schedule_not_found'],
    async handler({ identity, params: { name }, query: { tenant } }) {
      const change = own(identity, tenant, name);
      logger.info({ by: identity.id, tenant: change.tenant, schedule: name }, 'schedule resumed');
      return view(await schedules.resume(change));
    },
  });

  addRoute(app, {
    method: 'POST',
    url: '/v1/schedules/:name/run',
    scope: 'submit',
    tag: 'schedules',
    summary: "Submit the schedule's task now, whatever its timing, pause or overlap say",
    params: Name,
    query: OfTenant,
    responses: { 201: SubmittedSchema },
    errors: [...WRITE_ERRORS, 'schedule_not_found', 'backlog_full'],
    async handler({ identity, params: { name }, query: { tenant }, request, reply }) {
      const schedule = existing(identity, tenant, name);
      const { type, payload, priority, policy } = schedule;
      const task = { type, payload, priority, policy };
      const outcome = await intake.submit(schedule.tenant, task, {
        actor: actorOf(identity),
        schedule: { name },
      });
      if (!outcome.ok)
        return reply.code(outcome.error.status).send(errorBody(outcome.error, request.id, outcome.reasons));
      const { ok: _ok, ...submitted } = outcome;
      return reply
        .code(201)
        .header('location', `/v1/tasks/${submitted.id}`)
        .header('taskledger-position', submitted.seq)
        .send(submitted);
    },
  });

  addRoute(app, {
    method: 'GET',
    url: '/v1/schedules/:name/next',
    scope: 'read',
    tag: 'schedules',
    summary: "Read a schedule's next slots, in UTC and in its zone",
    params: Name,
    query: OfTenant.extend({ count: z.coerce.number().int().min(1).max(100).default(10) }),
    responses: { 200: SlotsView },
    errors: READ_ERRORS,
    async handler({ identity, params: { name }, query: { tenant, count } }) {
      const schedule = existing(identity, tenant, name);
      const after = Math.max(clock.now(), Date.parse(schedule.since));
      return slotsView(schedule.timeZone, nextSlots(slotsOfSchedule(schedule), after, count));
    },
  });

  addRoute(app, {
    method: 'POST',
    url: '/v1/schedules/preview',
    scope: 'read',
    tag: 'schedules',
    summary: 'Try a timing out: its next slots, nothing is stored',
    body: PreviewBody,
    responses: { 200: SlotsView },
    errors: ['schedule_invalid'],
    async handler({ body }) {
      const { count, ...timing } = checked(PreviewBody, body);
      const now = clock.now();
      return slotsView(timing.timeZone, nextSlots(checkedSlots(timing, now), now, count));
    },
  });

  function definitionIn(body: unknown): Definition {
    const { payload, ...rest } = (body ?? {}) as Readonly<Record<string, unknown>>;
    if (payload === undefined)
      throw new TaskledgerError('request_invalid', {
        field: 'payload',
        reason: 'payload is missing; send null for tasks without one',
      });
    const limits = { maxBytes: config.maxPayloadBytes, maxDepth: config.maxPayloadDepth };
    const unfit = checkJson(payload, 'payload', limits);
    if (unfit !== undefined) throw unfit.error;
    checked(z.unknown(), rest);
    const definition = parse(DefinitionSchema, body);
    checkedSlots(definition, clock.now());
    return { ...definition, payload: payload as Json };
  }
}

function checked<T>(schema: z.ZodType<T>, body: unknown): T {
  const unfit = checkJson(body ?? null, 'body', BODY_LIMITS);
  if (unfit !== undefined) throw unfit.error;
  return parse(schema, body);
}

function nextAt(schedule: Schedule, now: number): string | null {
  if (schedule.paused !== undefined) return null;
  const next = slotsOf(schedule)?.next(Math.max(now, Date.parse(schedule.since)));
  return next === undefined ? null : new Date(next).toISOString();
}

/** A schedule stored by a newer version may have a timing that this one does not know. */
function slotsOf(schedule: Schedule): Slots | undefined {
  try {
    return slotsOfSchedule(schedule);
  } catch {
    return undefined;
  }
}

function slotsView(timeZone: string, slots: readonly number[]): z.infer<typeof SlotsView> {
  const zone = zoneOf(timeZone);
  return {
    timeZone,
    timeZoneData: process.versions['tz'] ?? 'unknown',
    slots: slots.map((slot) => {
      const at = new Date(slot).toISOString();
      return { at, local: zone === undefined ? at : wallText(zone, slot) };
    }),
  };
}
