import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { checkedSlots } from '../../schedules/definition.ts';
import { DefinitionSchema, slotsOfSchedule } from '../../schedules/schedule.ts';
import { nextSlots } from '../../schedules/timing.ts';
import { checkedBody } from '../checked-body.ts';
import type { HttpParts } from '../parts.ts';
import { addRoute } from '../route.ts';
import {
  namedSchedule,
  SCHEDULE_READ_ERRORS,
  ScheduleParams,
  ScheduleTenant,
  SlotsViewSchema,
  slotsView,
} from '../schedule-view.ts';

const PreviewBody = DefinitionSchema.pick({
  cron: true,
  every: true,
  timeZone: true,
  startAt: true,
  endAt: true,
}).extend({ count: z.int().min(1).max(100).default(10) });

/** When a schedule would make tasks: a stored one, or a timing that is tried out. */
export function scheduleSlotRoutes(app: FastifyInstance, parts: HttpParts): void {
  readNextSlots(app, parts);
  previewTiming(app, parts);
}

function readNextSlots(app: FastifyInstance, parts: HttpParts): void {
  addRoute(app, {
    method: 'GET',
    url: '/v1/schedules/:name/next',
    scope: 'read',
    tag: 'schedules',
    summary: "Read a schedule's next slots, in UTC and in its zone",
    params: ScheduleParams,
    query: ScheduleTenant.extend({ count: z.coerce.number().int().min(1).max(100).default(10) }),
    responses: { 200: SlotsViewSchema },
    errors: SCHEDULE_READ_ERRORS,
    async handler(asked) {
      const schedule = namedSchedule(parts, asked);
      const after = Math.max(parts.clock.now(), Date.parse(schedule.since));
      return slotsView(schedule.timeZone, nextSlots(slotsOfSchedule(schedule), after, asked.query.count));
    },
  });
}

function previewTiming(app: FastifyInstance, { clock }: HttpParts): void {
  addRoute(app, {
    method: 'POST',
    url: '/v1/schedules/preview',
    scope: 'read',
    tag: 'schedules',
    summary: 'Try a timing out: its next slots, nothing is stored',
    body: PreviewBody,
    responses: { 200: SlotsViewSchema },
    errors: ['schedule_invalid'],
    async handler({ body }) {
      const { count, ...timing } = checkedBody(PreviewBody, body);
      const now = clock.now();
      return slotsView(timing.timeZone, nextSlots(checkedSlots(timing, now), now, count));
    },
  });
}
