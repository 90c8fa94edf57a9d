import { z } from 'zod';
import { TaskledgerError } from '../domain/errors.ts';
import { NameSchema } from '../domain/names.ts';
import type { KeyIdentity } from '../registry/keys.ts';
import { type Schedule, ScheduleSchema, slotsOfSchedule } from '../schedules/schedule.ts';
import type { Change } from '../schedules/schedules.ts';
import type { Slots } from '../schedules/timing.ts';
import { wallText, zoneOf } from '../schedules/zone.ts';
import { actorOf, tenantParameter, writableTenant } from './auth.ts';
import type { HttpParts } from './parts.ts';

/** What the path and the query of a route of one schedule are. */
export const ScheduleParams = z.strictObject({ name: NameSchema });
export const ScheduleTenant = z.strictObject(tenantParameter);

export const SCHEDULE_WRITE_ERRORS = [
  'name_invalid',
  'tenant_forbidden',
  'tenant_unknown',
  'log_unavailable',
] as const;
export const SCHEDULE_READ_ERRORS = [
  'name_invalid',
  'tenant_forbidden',
  'tenant_unknown',
  'schedule_not_found',
] as const;

export const ScheduleViewSchema = z.object({
  ...ScheduleSchema.shape,
  nextAt: z.iso.datetime().nullable().describe('The next slot; null when paused or over'),
});
export const SlotsViewSchema = z.object({
  timeZone: z.string(),
  timeZoneData: z.string().describe('Release of the IANA time zone data that this is calculated with'),
  slots: z.array(
    z.object({
      at: z.iso.datetime().describe('UTC'),
      local: z.string().describe("In the schedule's zone"),
    }),
  ),
});

/** What a request asks of which schedule. */
interface Asked {
  readonly identity: KeyIdentity;
  readonly params: { readonly name: string };
  readonly query: { readonly tenant?: string | undefined };
}

/** The schedule that a request names. Throws `schedule_not_found`. */
export function namedSchedule({ schedules, registry }: HttpParts, asked: Asked): Schedule {
  const tenant = writableTenant(asked.identity, asked.query.tenant, registry.tenants);
  const key = { tenant, name: asked.params.name };
  const schedule = schedules.get(key);
  if (schedule === undefined) throw new TaskledgerError('schedule_not_found', key);
  return schedule;
}

/** Who changes which schedule, and when; it need not exist yet. */
export const changeOf = ({ registry, clock }: HttpParts, asked: Asked): Change => ({
  tenant: writableTenant(asked.identity, asked.query.tenant, registry.tenants),
  name: asked.params.name,
  by: actorOf(asked.identity),
  now: clock.now(),
});

export const scheduleView = (schedule: Schedule, now: number): z.infer<typeof ScheduleViewSchema> => ({
  ...schedule,
  nextAt: nextAt(schedule, now),
});

export function slotsView(timeZone: string, slots: readonly number[]): z.infer<typeof SlotsViewSchema> {
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
