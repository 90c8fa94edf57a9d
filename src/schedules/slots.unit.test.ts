import { afterEach, describe, expect, test } from 'vitest';
import { cpuMs } from '../../test/support/cpu-time.ts';
import { nextSlots, slotsOf, type Timing } from './timing.ts';

const HOUR = 3_600_000;
const at = (iso: string): number => Date.parse(iso);
const iso = (slots: readonly number[]): string[] => slots.map((slot) => new Date(slot).toISOString());
const next = (timing: Timing, after: string, count: number): string[] =>
  iso(nextSlots(slotsOf(timing), at(after), count));

const ZONES = [
  'America/New_York',
  'America/St_Johns',
  'America/Santiago',
  'America/Havana',
  'Europe/Berlin',
  'Africa/Casablanca',
  'Asia/Kolkata',
  'Antarctica/Troll',
  'Antarctica/Casey',
  'Australia/Lord_Howe',
  'Australia/Adelaide',
  'Pacific/Chatham',
] as const;

/** What a wall shows, by the zone's own words: nothing here is shared with the code under test. */
function offsetOf(zone: string): (instant: number) => number {
  const format = new Intl.DateTimeFormat('en-US', { timeZone: zone, timeZoneName: 'longOffset' });
  return (instant) => {
    const name = format.formatToParts(instant).find(({ type }) => type === 'timeZoneName')?.value ?? '';
    const [, sign, hours, minutes] = /^GMT(?:([+-])(\d\d):(\d\d))?$/.exec(name) ?? [];
    return sign === undefined ? 0 : (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000;
  };
}

interface Change {
  /** The first instant of the new offset. */
  readonly instant: number;
  readonly before: number;
  readonly after: number;
}

const changesOf = (zone: string): Change[] => CHANGES.get(zone) ?? [];

function findChanges(zone: string): Change[] {
  const offsetAt = offsetOf(zone);
  const changes: Change[] = [];
  const end = at('2041-01-01T00:00:00Z');
  for (let from = at('2020-01-01T00:00:00Z'); from < end; from += 12 * HOUR) {
    const [before, after] = [offsetAt(from), offsetAt(from + 12 * HOUR)];
    if (before === after) continue;
    let [low, high] = [from, from + 12 * HOUR];
    while (high - low > 1_000) {
      const middle = low + Math.floor((high - low) / 2_000) * 1_000;
      if (offsetAt(middle) === before) low = middle;
      else high = middle;
    }
    changes.push({ instant: high, before, after });
  }
  return changes;
}

const CHANGES = new Map(ZONES.map((zone) => [zone as string, findChanges(zone)]));

const clockOf = (wall: number): { hour: number; minute: number } => {
  const date = new Date(wall);
  return { hour: date.getUTCHours(), minute: date.getUTCMinutes() };
};

describe.each(ZONES)('every change of the clock in %s from 2020 to 2040', (zone) => {
  const changes = changesOf(zone);
  const offsetAt = offsetOf(zone);

  test('what happens at a time of day happens once that day: when the wall first shows it, or at the jump over it', () => {
    for (const { instant, before, after } of changes) {
      const [low, high] = [instant + Math.min(before, after), instant + Math.max(before, after)];
      for (let wall = low - HOUR / 2; wall <= high; wall += HOUR / 2) {
        const { hour, minute } = clockOf(wall);
        const slots = slotsOf({ cron: `${minute} ${hour} * * *`, timeZone: zone });
        const shown = [wall - before, wall - after].filter((each) => each + offsetAt(each) === wall);
        const expected = shown.length === 0 ? instant : Math.min(...shown);
        const day = slots.last({ after: expected - 12 * HOUR, upTo: expected + 12 * HOUR, count: 5 });
        expect({ zone, wall: iso([wall]), slots: iso(day) }).toEqual({
          zone,
          wall: iso([wall]),
          slots: iso([expected]),
        });
        expect(slots.next(expected - 12 * HOUR)).toBe(expected);
      }
    }
  });

  test('what happens every quarter of an hour goes on in real time', () => {
    for (const { instant } of changes) {
      const slots = slotsOf({ cron: '*/15 * * * *', timeZone: zone });
      const from = Math.floor(instant / HOUR) * HOUR - HOUR;
      const expected = Array.from({ length: 18 }, (_, n) => from + (n + 1) * 15 * 60_000);
      expect(iso(nextSlots(slots, from, 18))).toEqual(iso(expected));
      expect(iso(slots.last({ after: from, upTo: from + 4.5 * HOUR, count: 100 }))).toEqual(iso(expected));
    }
  });

  test('what happens every 90 minutes of elapsed time does not notice', () => {
    const everyMs = 1.5 * HOUR;
    for (const { instant } of changes) {
      const slots = slotsOf({ everyMs, anchor: instant - 10 * HOUR });
      const found = nextSlots(slots, instant - 4 * HOUR, 6);
      expect(found.map((slot) => (slot - (instant - 10 * HOUR)) % everyMs)).toEqual([0, 0, 0, 0, 0, 0]);
      expect(found.slice(1).map((slot, index) => slot - (found[index] ?? 0))).toEqual(Array(5).fill(everyMs));
    }
  });
});

test('the zones change their clocks, by whole and half hours, some never', () => {
  const counts = Object.fromEntries(ZONES.map((zone) => [zone, changesOf(zone).length]));
  expect(counts['America/New_York']).toBe(42);
  expect(counts['Asia/Kolkata']).toBe(0);
  expect(changesOf('Australia/Lord_Howe')[0]).toMatchObject({ before: 11 * HOUR, after: 10.5 * HOUR });
  expect(Object.values(counts).reduce((sum, count) => sum + count, 0)).toBeGreaterThan(300);
});

describe('the calendar', () => {
  const utc = { timeZone: 'UTC' };
  test('has a leap day every four years, but not in 2100', () => {
    expect(next({ cron: '0 0 29 2 *', ...utc }, '2092-03-01T00:00:00Z', 2)).toEqual([
      '2096-02-29T00:00:00.000Z',
      '2104-02-29T00:00:00.000Z',
    ]);
  });

  test('has months without a 31st', () => {
    expect(next({ cron: '0 12 31 * *', ...utc }, '2027-01-01T00:00:00Z', 4)).toEqual([
      '2027-01-31T12:00:00.000Z',
      '2027-03-31T12:00:00.000Z',
      '2027-05-31T12:00:00.000Z',
      '2027-07-31T12:00:00.000Z',
    ]);
  });

  test('has a last day of every month', () => {
    expect(next({ cron: '0 0 L * *', ...utc }, '2028-01-31T00:00:00Z', 2)).toEqual([
      '2028-02-29T00:00:00.000Z',
      '2028-03-31T00:00:00.000Z',
    ]);
  });

  test('has no 30 February', () => {
    const slots = slotsOf({ cron: '0 0 30 2 *', ...utc });
    expect(slots.next(0)).toBeUndefined();
    expect(slots.last({ after: 0, upTo: at('2030-01-01T00:00:00Z'), count: 3 })).toEqual([]);
  });

  test('has seconds when the expression has six fields', () => {
    expect(next({ cron: '*/20 59 23 31 12 *', ...utc }, '2027-01-01T00:00:00Z', 3)).toEqual([
      '2027-12-31T23:59:00.000Z',
      '2027-12-31T23:59:20.000Z',
      '2027-12-31T23:59:40.000Z',
    ]);
  });

  test('is that of the zone, half an hour off or not', () => {
    expect(next({ cron: '0 9 1 1 *', timeZone: 'Asia/Kolkata' }, '2027-06-01T00:00:00Z', 1)).toEqual([
      '2028-01-01T03:30:00.000Z',
    ]);
    expect(next({ cron: '0 9 1 7 *', timeZone: 'America/St_Johns' }, '2027-06-01T00:00:00Z', 1)).toEqual([
      '2027-07-01T11:30:00.000Z',
    ]);
  });
});

describe('the last slots before an instant', () => {
  test.each(['*/7 * * * *', '0 3 * * 1-5', '30 1 * * *', '15,45 */2 * * *', '*/10 * 2 * * *'])(
    'of %s are the same as by going forward',
    (cron) => {
      for (const zone of ['America/New_York', 'Australia/Lord_Howe', 'UTC']) {
        const slots = slotsOf({ cron, timeZone: zone });
        const after = at('2026-10-30T00:00:00Z');
        const forward = nextSlots(slots, after, 400);
        for (let hour = 1; hour < 72; hour += 7) {
          const upTo = Math.min(after + hour * HOUR, forward.at(-1) ?? 0);
          const expected = forward.filter((slot) => slot <= upTo).slice(-25);
          expect(iso(slots.last({ after, upTo, count: 25 }))).toEqual(iso(expected));
        }
      }
    },
  );

  test('are found at once however long ago the first was', () => {
    const before = cpuMs();
    const slots = slotsOf({ cron: '* * * * * *', timeZone: 'Europe/Berlin' });
    const upTo = at('2026-11-29T00:00:00Z');
    expect(slots.last({ after: 0, upTo, count: 3 })).toEqual([upTo - 2_000, upTo - 1_000, upTo]);
    // Slot by slot it would take minutes.
    expect(cpuMs() - before).toBeLessThan(5_000);
  });
});

describe('a schedule with bounds', () => {
  test('has a slot at its start when one falls there, and none at its end', () => {
    const timing = {
      cron: '0 * * * *',
      timeZone: 'UTC',
      startAt: at('2027-01-01T10:00:00Z'),
      endAt: at('2027-01-01T12:00:00Z'),
    };
    expect(next(timing, '2026-01-01T00:00:00Z', 5)).toEqual([
      '2027-01-01T10:00:00.000Z',
      '2027-01-01T11:00:00.000Z',
    ]);
    expect(iso(slotsOf(timing).last({ after: 0, upTo: at('2028-01-01T00:00:00Z'), count: 5 }))).toEqual([
      '2027-01-01T10:00:00.000Z',
      '2027-01-01T11:00:00.000Z',
    ]);
  });

  test('counts elapsed time from its anchor', () => {
    const anchor = at('2027-01-01T00:00:07Z');
    expect(next({ everyMs: 60_000, anchor }, '2026-01-01T00:00:00Z', 2)).toEqual([
      '2027-01-01T00:00:07.000Z',
      '2027-01-01T00:01:07.000Z',
    ]);
    expect(next({ everyMs: 60_000, anchor }, '2027-01-01T00:00:07Z', 1)).toEqual([
      '2027-01-01T00:01:07.000Z',
    ]);
  });
});

describe('a process in another zone', () => {
  const { TZ } = process.env;
  afterEach(() => {
    if (TZ === undefined) delete process.env['TZ'];
    else process.env['TZ'] = TZ;
  });

  test.each(['Pacific/Auckland', 'America/Anchorage', 'Asia/Kolkata'])('%s finds the same slots', (host) => {
    process.env['TZ'] = host;
    expect(Intl.DateTimeFormat().resolvedOptions().timeZone).toMatch(/Auckland|Anchorage|Kolkata|Calcutta/);
    expect(new Date(2026, 0, 1).getTimezoneOffset()).not.toBe(0);
    expect(next({ cron: '30 2 * * *', timeZone: 'America/New_York' }, '2026-03-07T00:00:00Z', 3)).toEqual([
      '2026-03-07T07:30:00.000Z',
      '2026-03-08T07:00:00.000Z',
      '2026-03-09T06:30:00.000Z',
    ]);
    expect(next({ cron: '30 1 * * *', timeZone: 'America/New_York' }, '2026-10-31T12:00:00Z', 2)).toEqual([
      '2026-11-01T05:30:00.000Z',
      '2026-11-02T06:30:00.000Z',
    ]);
  });
});

describe('what is no timing', () => {
  test.each(['', '61 * * * *', '* * * *', '* * * * * * 2027', 'often'])('"%s" is refused', (cron) => {
    expect(() => slotsOf({ cron, timeZone: 'UTC' })).toThrow(/./);
  });

  test.each(['Mars/Olympus', '+02:00', ''])('zone "%s" is refused', (timeZone) => {
    expect(() => slotsOf({ cron: '* * * * *', timeZone })).toThrow(RangeError);
  });
});
