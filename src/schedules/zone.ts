/**
 * Wall clocks. A wall time is a number: the ms since 1970 of an instant at which a clock in UTC would show the same. The
 * zones and their rules are those of the running Node's ICU (`process.versions.tz`).
 */
export interface Zone {
  readonly name: string;
  /** What the clock on the wall is ahead of UTC at an instant, in ms. */
  offsetAt(instant: number): number;
}

/** No zone has two changes of its clock within this time, and none changes it by more. */
const AROUND_MS = 26 * 3_600_000;
const QUARTER_MS = 900_000;
/** Remembered offsets of a zone. */
const MAX_KNOWN = 4_096;
const zones = new Map<string, Zone | undefined>();

/** Undefined for what is no IANA zone. Names differ in case only by mistake, so the case does not matter. */
export function zoneOf(name: string): Zone | undefined {
  if (!zones.has(name)) zones.set(name, openZone(name));
  return zones.get(name);
}

/** The instants at which a wall shows a time: two when the clock was set back over it, none when it was set forward. */
export function instantsOf(zone: Zone, wall: number): number[] {
  const [before, after] = offsetsAround(zone, wall);
  const instants = [...new Set([before, after])]
    .map((offset) => wall - offset)
    .filter((instant) => zone.offsetAt(instant) === wall - instant);
  return instants.sort((a, b) => a - b);
}

/** When the clock was set forward over a wall time that it never showed. */
export function jumpOver(zone: Zone, wall: number): number {
  const [before, after] = offsetsAround(zone, wall);
  // The wall time under the old offset is past the jump, under the new one it is before it.
  let [low, high] = [wall - after, wall - before];
  while (high - low > 1) {
    const middle = Math.floor((low + high) / 2);
    if (zone.offsetAt(middle) === before) low = middle;
    else high = middle;
  }
  return high;
}

/** The offsets that can belong to a wall time: those in force well before and well after it. */
export const offsetsAround = (zone: Zone, wall: number): readonly [before: number, after: number] => [
  zone.offsetAt(wall - AROUND_MS),
  zone.offsetAt(wall + AROUND_MS),
];

/** An instant as the zone's wall shows it, such as `2026-11-01T01:30:00.000-04:00`. */
export function wallText(zone: Zone, instant: number): string {
  const offset = zone.offsetAt(instant);
  const minutes = Math.abs(Math.round(offset / 60_000));
  const two = (n: number): string => String(n).padStart(2, '0');
  const wall = new Date(instant + offset).toISOString().slice(0, -1);
  return `${wall}${offset < 0 ? '-' : '+'}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`;
}

function openZone(name: string): Zone | undefined {
  // ICU also takes offsets such as +01:00; they are no zones.
  if (!/^[A-Za-z]/.test(name)) return undefined;
  let format: Intl.DateTimeFormat;
  try {
    format = new Intl.DateTimeFormat('en-US', {
      timeZone: name,
      calendar: 'iso8601',
      numberingSystem: 'latn',
      hourCycle: 'h23',
      year: 'numeric',
      month: '2-digit',
      day: '2-digit',
      hour: '2-digit',
      minute: '2-digit',
      second: '2-digit',
    });
  } catch {
    return undefined;
  }
  const known = new Map<number, number>();
  const direct = (instant: number): number => wallOf(format, instant) - instant;
  const offsetOfQuarter = (quarter: number): number => {
    const remembered = known.get(quarter);
    if (remembered !== undefined) return remembered;
    if (known.size > MAX_KNOWN) known.clear();
    const offset = direct(quarter * QUARTER_MS);
    known.set(quarter, offset);
    return offset;
  };
  return {
    name,
    offsetAt(instant) {
      const quarter = Math.floor(instant / QUARTER_MS);
      const offset = offsetOfQuarter(quarter);
      // A clock may be changed at one minute past midnight.
      return offset === offsetOfQuarter(quarter + 1) ? offset : direct(Math.floor(instant / 1_000) * 1_000);
    },
  };
}

function wallOf(format: Intl.DateTimeFormat, instant: number): number {
  const parts: Record<string, number> = {};
  for (const { type, value } of format.formatToParts(instant)) parts[type] = Number(value);
  const { year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0 } = parts;
  return Date.UTC(year, month - 1, day, hour, minute, second);
}
