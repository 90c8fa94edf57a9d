import { TaskledgerError } from '../domain/errors.ts';
import { CronSyntaxError } from './cron.ts';
import { slotsOfSchedule, type TimingPart } from './schedule.ts';
import type { Slots } from './timing.ts';

/** The slots that a timing has from now on. Throws `schedule_invalid` for one that has none, or makes no sense. */
export function checkedSlots(timing: TimingPart, now: number): Slots {
  const { cron, every, startAt, endAt } = timing;
  if ((cron === undefined) === (every === undefined))
    throw invalid(cron === undefined ? 'cron' : 'every', 'it needs either cron or every');
  if (startAt !== undefined && endAt !== undefined && Date.parse(endAt) <= Date.parse(startAt))
    throw invalid('endAt', 'endAt must be after startAt');
  const slots = opened(timing, now);
  if (slots.next(now) === undefined)
    throw invalid(endAt === undefined ? 'cron' : 'endAt', 'it would never have a slot');
  return slots;
}

function opened(timing: TimingPart, now: number): Slots {
  // The zone of `every` is for showing its slots only, but shown they will be.
  try {
    if (timing.cron === undefined)
      slotsOfSchedule({ cron: '0 0 1 1 *', timeZone: timing.timeZone, anchor: '' });
    return slotsOfSchedule({ ...timing, anchor: new Date(now).toISOString() });
  } catch (error) {
    if (error instanceof CronSyntaxError) throw invalid('cron', error.message);
    if (error instanceof RangeError) throw invalid('timeZone', error.message);
    throw error;
  }
}

const invalid = (field: string, reason: string): TaskledgerError =>
  new TaskledgerError('schedule_invalid', { field, reason });
