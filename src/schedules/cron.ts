import { Cron } from 'croner';
import { instantsOf, jumpOver, offsetsAround, type Zone } from './zone.ts';

/** Longest part of a day that a clock has been set back by, so far ahead a repeated hour has to be looked for. */
const LONGEST_REPEAT_MS = 4 * 3_600_000;

/** The slots of a cron expression on the clocks of a zone, in ms since 1970. */
export interface CronSlots {
  /** The first slot after an instant; undefined when there is none. */
  next(after: number): number | undefined;
  /** The last `count` slots of `after < slot <= upTo`, oldest first. */
  last(range: { readonly after: number; readonly upTo: number; readonly count: number }): number[];
}

export class CronSyntaxError extends Error {
  override readonly name = 'CronSyntaxError';
}

/**
 * Five fields (minute to weekday) or six (second first), with names, ranges, steps, `L`, `#` and `W`, or a nickname such as
 * `@daily`. Throws CronSyntaxError.
 *
 * The expression is about the clock on the wall, and clocks are changed. What is to happen at certain hours happens once a
 * day: at the first pass through an hour that is repeated, and when the clock jumps for an hour that is skipped. What is to
 * happen every hour (its field begins with `*`) follows real time: in both passes, and nothing for the skipped hour.
 */
export function parseCron(expression: string, zone: Zone): CronSlots {
  const pattern = parsePattern(expression);
  const hourly = isHourly(expression);

  const slotsAt = (wall: number): number[] => {
    const instants = instantsOf(zone, wall);
    if (hourly) return instants;
    return [instants[0] ?? jumpOver(zone, wall)];
  };
  /** No slot of this wall time or a later one is before it; none of an earlier one is after what it says for that. */
  const earliestOf = (wall: number): number => wall - Math.max(...offsetsAround(zone, wall));

  return {
    next(after) {
      const offset = Math.min(zone.offsetAt(after), zone.offsetAt(after + LONGEST_REPEAT_MS));
      let best: number | undefined;
      let wall = nextWall(pattern, after + offset - 1_000);
      while (wall !== undefined && (best === undefined || earliestOf(wall) < best)) {
        for (const slot of slotsAt(wall))
          if (slot > after && (best === undefined || slot < best)) best = slot;
        wall = nextWall(pattern, wall);
      }
      return best;
    },
    last({ after, upTo, count }) {
      const found = new Set<number>();
      let wall = upTo + Math.max(zone.offsetAt(upTo), zone.offsetAt(upTo - LONGEST_REPEAT_MS)) + 1_000;
      // Looking back costs as much as the slots found; most ranges have few.
      for (let look = 2; ; look = Math.min(4 * look, count + 1)) {
        const walls = pattern.previousRuns(look, new Date(wall)).map((date) => date.getTime());
        for (const each of walls) for (const slot of slotsAt(each)) found.add(slot);
        const oldest = walls.at(-1);
        // Every slot after this one has been found.
        const complete =
          oldest === undefined || walls.length < look
            ? Number.NEGATIVE_INFINITY
            : oldest - Math.min(...offsetsAround(zone, oldest));
        const slots = [...found].filter((slot) => slot > after && slot <= upTo).sort((a, b) => a - b);
        if (complete <= after || slots.filter((slot) => slot > complete).length >= count)
          return slots.slice(-count);
        wall = oldest ?? wall;
      }
    },
  };
}

function parsePattern(expression: string): Cron {
  try {
    return new Cron(expression, { timezone: 'UTC', mode: '5-or-6-parts', paused: true });
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/^CronPattern: /, '') : String(error);
    throw new CronSyntaxError(reason, { cause: error });
  }
}

function nextWall(pattern: Cron, wall: number): number | undefined {
  return pattern.nextRun(new Date(wall))?.getTime();
}

function isHourly(expression: string): boolean {
  const fields = expression.trim().split(/\s+/);
  const hour = fields.length === 6 ? fields[2] : fields[1];
  return fields.length === 1 ? /^@hourly$/i.test(fields[0] ?? '') : /^[*?]/.test(hour ?? '');
}
