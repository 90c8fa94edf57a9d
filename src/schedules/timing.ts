import { type CronSlots, parseCron } from './cron.ts';
import { zoneOf } from './zone.ts';

/** When a schedule's slots are: on the clocks of a zone, or every so often counted from an anchor. Instants are ms since 1970. */
export type Timing = (
  | { readonly cron: string; readonly timeZone: string }
  | { readonly everyMs: number; readonly anchor: number }
) & {
  /** No slot is before. */
  readonly startAt?: number | undefined;
  /** No slot is at or after. */
  readonly endAt?: number | undefined;
};

/** A timing, ready to be asked. Pure: the same questions always get the same answers. */
export interface Slots {
  /** The first slot after an instant. */
  next(after: number): number | undefined;
  /** The last `count` slots of `after < slot <= upTo`, oldest first. Costs no more for a long range. */
  last(range: SlotRange & { readonly count: number }): number[];
}

export interface SlotRange {
  readonly after: number;
  readonly upTo: number;
}

/** Throws CronSyntaxError, and RangeError for a zone that does not exist. */
export function slotsOf(timing: Timing): Slots {
  const all = 'cron' in timing ? cronSlots(timing.cron, timing.timeZone) : everySlots(timing);
  const { startAt = Number.NEGATIVE_INFINITY, endAt = Number.POSITIVE_INFINITY } = timing;
  return {
    next(after) {
      const slot = all.next(Math.max(after, startAt - 1));
      return slot === undefined || slot >= endAt ? undefined : slot;
    },
    last: ({ after, upTo, count }) =>
      upTo <= after || count <= 0
        ? []
        : all.last({ after: Math.max(after, startAt - 1), upTo: Math.min(upTo, endAt - 1), count }),
  };
}

/** The first slots after an instant, at most `count`. */
export function nextSlots(slots: Slots, after: number, count: number): number[] {
  const found: number[] = [];
  for (let slot = slots.next(after); slot !== undefined && found.length < count; slot = slots.next(slot))
    found.push(slot);
  return found;
}

function cronSlots(cron: string, timeZone: string): CronSlots {
  const zone = zoneOf(timeZone);
  if (zone === undefined) throw new RangeError(`${timeZone} is no time zone`);
  return parseCron(cron, zone);
}

/** Elapsed time, which no clock change touches. */
function everySlots({ everyMs, anchor }: { everyMs: number; anchor: number }): Slots {
  const indexAt = (instant: number): number => Math.floor((instant - anchor) / everyMs);
  return {
    next: (after) => anchor + Math.max(0, indexAt(after) + 1) * everyMs,
    last({ after, upTo, count }) {
      const newest = indexAt(upTo);
      const oldest = Math.max(0, indexAt(after) + 1, newest - count + 1);
      return Array.from(
        { length: Math.max(0, newest - oldest + 1) },
        (_, n) => anchor + (oldest + n) * everyMs,
      );
    },
  };
}
