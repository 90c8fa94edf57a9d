import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { actorOf } from '../auth.ts';
import { checkedBody } from '../checked-body.ts';
import { errorBody } from '../errors.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute } from '../route.ts';
import {
  changeOf,
  namedSchedule,
  SCHEDULE_WRITE_ERRORS,
  ScheduleParams,
  ScheduleTenant,
  ScheduleViewSchema,
  scheduleView,
} from '../schedule-view.ts';
import { SubmittedSchema } from '../schemas.ts';

const PauseBody = z.strictObject({ reason: z.string().min(1).max(1_000).optional() });

/** What can be done with a schedule without changing its definition. */
export function scheduleCommandRoutes(app: FastifyInstance, parts: HttpParts): void {
  pauseSchedule(app, parts);
  resumeSchedule(app, parts);
  runSchedule(app, parts);
}

function pauseSchedule(app: FastifyInstance, parts: HttpParts): void {
  const { schedules, clock, logger } = parts;
  addRoute(app, {
    method: 'POST',
    url: '/v1/schedules/:name/pause',
    scope: 'submit',
    tag: 'schedules',
    summary: 'Stop making tasks until the schedule is resumed',
    params: ScheduleParams,
    query: ScheduleTenant,
    body: PauseBody.optional(),
    responses: { 200: ScheduleViewSchema },
    errors: [...SCHEDULE_WRITE_ERRORS, 'schedule_not_found'],
    async handler(asked) {
      const change = changeOf(parts, asked);
      const { reason } = checkedBody(PauseBody, asked.body);
      const { tenant, name: schedule } = change;
      logger.info({ by: asked.identity.id, tenant, schedule, reason }, 'schedule paused');
      return scheduleView(await schedules.pause(change, reason), clock.now());
    },
  });
}

function resumeSchedule(app: FastifyInstance, parts: HttpParts): void {
  const { schedules, clock, logger } = parts;
  addRoute(app, {
    method: 'POST',
    url: '/v1/schedules/:name/resume',
    scope: 'submit',
    tag: 'schedules',
    summary: 'Go on with the next slot; those that fell into the pause are not made up for',
    params: ScheduleParams,
    query: ScheduleTenant,
    responses: { 200: ScheduleViewSchema },
    errors: [...SCHEDULE_WRITE_ERRORS, 'schedule_not_found'],
    async handler(asked) {
      const change = changeOf(parts, asked);
      const { tenant, name: schedule } = change;
      logger.info({ by: asked.identity.id, tenant, schedule }, 'schedule resumed');
      return scheduleView(await schedules.resume(change), clock.now());
    },
  });
}

function runSchedule(app: FastifyInstance, parts: HttpParts): void {
  const { intake } = parts;
  addRoute(app, {
    method: 'POST',
    url: '/v1/schedules/:name/run',
    scope: 'submit',
    tag: 'schedules',
    summary: "Submit the schedule's task now, whatever its timing, pause or overlap say",
    params: ScheduleParams,
    query: ScheduleTenant,
    responses: { 201: SubmittedSchema },
    errors: [...SCHEDULE_WRITE_ERRORS, 'schedule_not_found', 'backlog_full'],
    async handler(asked) {
      const { identity, request, reply } = asked;
      const { tenant, name, type, payload, priority, policy } = namedSchedule(parts, asked);
      const task = { type, payload, priority, policy };
      const outcome = await intake.submit(tenant, task, { actor: actorOf(identity), schedule: { name } });
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
}
