import { z } from 'zod';
import { ActorSchema } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import { NameSchema, PrioritySchema } from '../domain/names.ts';
import { PolicyOverrideSchema } from '../domain/policy.ts';
import { type Slots, slotsOf, type Timing } from './timing.ts';

const UNITS = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const LEAST_EVERY_MS = 1_000;
const MOST_EVERY_MS = 366 * 86_400_000;
const instant = z.iso.datetime({ offset: true });

/** `15m`, or milliseconds. */
const EverySchema = z
  .union([z.int(), z.string().regex(/^[1-9]\d{0,8}[smhd]$/, 'use a length such as 30s, 15m, 2h or 1d')])
  .refine((every) => everyMsOf(every) >= LEAST_EVERY_MS && everyMsOf(every) <= MOST_EVERY_MS, {
    message: 'use a length between one second and 366 days',
  });

export const OVERLAPS = ['allow', 'skip', 'cancel-previous'] as const;
export const MISSED = ['skip', 'latest', 'all'] as const;

/** What a user defines: the body of `PUT /v1/schedules/:name`. */
export const DefinitionSchema = z.strictObject({
  type: NameSchema.describe('Type of the tasks'),
  payload: z.unknown().describe('Payload of every task; null for none'),
  cron: z
    .string()
    .min(1)
    .max(200)
    .optional()
    .describe('Five fields (minute first) or six (second first); either this or `every`'),
  every: EverySchema.optional().describe(
    'Elapsed time from slot to slot, such as "15m", or ms; either this or `cron`',
  ),
  timeZone: z.string().max(64).default('UTC').describe('IANA zone whose clocks `cron` means'),
  priority: PrioritySchema.optional(),
  policy: PolicyOverrideSchema.optional(),
  overlap: z
    .enum(OVERLAPS)
    .default('allow')
    .describe('What a slot does while the task of the slot before has not ended'),
  missed: z
    .enum(MISSED)
    .default('latest')
    .describe('What becomes of slots that nobody was there to fire: none of them, the last, or all'),
  missedLimit: z.int().min(1).max(1_000).default(100).describe('With `missed: all`: the last so many'),
  startAt: instant.optional().describe('No slot is before; `every` counts from it'),
  endAt: instant.optional().describe('No slot is at or after'),
});
export type Definition = z.infer<typeof DefinitionSchema> & { readonly payload: Json };

/** A schedule as it is stored, and as the API shows it. */
export const ScheduleSchema = z.strictObject({
  ...DefinitionSchema.shape,
  tenant: NameSchema,
  name: NameSchema,
  /** Counts the changes. */
  version: z.int().min(1),
  createdAt: z.iso.datetime(),
  changedAt: z.iso.datetime(),
  changedBy: ActorSchema,
  /** Slots up to here are none of this timing's: it was set, or resumed, at this moment. */
  since: z.iso.datetime(),
  /** What `every` counts from when there is no `startAt`. */
  anchor: z.iso.datetime(),
  paused: z
    .strictObject({ at: z.iso.datetime(), by: ActorSchema, reason: z.string().max(1_000).optional() })
    .optional(),
});
export type Schedule = z.infer<typeof ScheduleSchema>;

/** Throws CronSyntaxError or RangeError for a timing that makes no sense. */
export const slotsOfSchedule = (schedule: TimingPart & { readonly anchor: string }): Slots =>
  slotsOf(timingOf(schedule));

export type TimingPart = Pick<
  z.infer<typeof DefinitionSchema>,
  'cron' | 'every' | 'timeZone' | 'startAt' | 'endAt'
>;

export function timingOf(schedule: TimingPart & { readonly anchor: string }): Timing {
  const { cron, every, timeZone, startAt, endAt, anchor } = schedule;
  const bounds = {
    startAt: startAt === undefined ? undefined : Date.parse(startAt),
    endAt: endAt === undefined ? undefined : Date.parse(endAt),
  };
  return cron === undefined
    ? { everyMs: everyMsOf(every ?? 0), anchor: Date.parse(startAt ?? anchor), ...bounds }
    : { cron, timeZone, ...bounds };
}

/** Whether two definitions have the same slots. */
export const sameTiming = (one: TimingPart, other: TimingPart): boolean =>
  one.cron === other.cron &&
  one.every === other.every &&
  one.timeZone === other.timeZone &&
  one.startAt === other.startAt &&
  one.endAt === other.endAt;

function everyMsOf(every: string | number): number {
  if (typeof every === 'number') return every;
  return Number(every.slice(0, -1)) * UNITS[every.slice(-1) as keyof typeof UNITS];
}
