import type { MISSED } from './schedule.ts';
import type { Slots } from './timing.ts';

/** A slot that is later than this was missed: nobody was there to fire it. A change of the leader takes less. */
export const MISSED_AFTER_MS = 30_000;
/** More slots than any schedule has in that time. */
const MOST_DUE = 100;

export interface PlanInput {
  readonly slots: Slots;
  /** Everything up to here is settled. */
  readonly after: number;
  readonly now: number;
  readonly missed: (typeof MISSED)[number];
  readonly missedLimit: number;
}

/**
 * Which slots to fire now, oldest first; those between them are passed over. Slots that are due and not missed are
 * always fired, and of the missed ones as many as the schedule wishes.
 */
export function dueSlots({ slots, after, now, missed, missedLimit }: PlanInput): readonly number[] {
  const missedUpTo = now - MISSED_AFTER_MS;
  const due = slots.last({ after: Math.max(after, missedUpTo), upTo: now, count: MOST_DUE });
  const lost = (count: number): readonly number[] => slots.last({ after, upTo: missedUpTo, count });
  switch (missed) {
    case 'skip':
      return due;
    case 'latest':
      return due.length > 0 ? due : lost(1);
    case 'all':
      return [...lost(missedLimit), ...due];
    default:
      return missed satisfies never;
  }
}
