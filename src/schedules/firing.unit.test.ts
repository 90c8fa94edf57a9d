import { describe, expect, test } from 'vitest';
import { memoryLog } from '../../test/support/memory-log.ts';
import { memoryMirror } from '../../test/support/memory-mirror.ts';
import { decide } from '../domain/decide.ts';
import { silentLogger } from '../observe/log.ts';
import { Firing, type Mark } from './firing.ts';
import { type Definition, DefinitionSchema, type Schedule } from './schedule.ts';
import { schedulesOver } from './schedules.ts';
import { taskIdOfSlot } from './slot-id.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const NOON = Date.parse('2026-11-29T12:00:00Z');
const by = { kind: 'key', id: 'ada' } as const;
const KEY = { tenant: 'acme', name: 'report' };

async function setup(definition: Partial<Definition> = {}, start = NOON) {
  const log = memoryLog();
  const mirror = memoryMirror<Schedule>();
  const marks = memoryMirror<Mark>();
  const schedules = schedulesOver(mirror);
  const world = { now: start, mayFire: true };
  const clock = { now: () => world.now };
  const firing = () =>
    new Firing({
      log,
      schedules: mirror,
      marks,
      types: { get: (type) => (type === 'report' ? { type, priority: 3 } : undefined) },
      clock,
      actor: { kind: 'dispatcher', id: 'scheduler-1' },
      logger: silentLogger,
      mayFire: () => world.mayFire,
    });
  const put = (over: Partial<Definition> = {}) =>
    schedules.put(
      { ...KEY, by, now: world.now },
      DefinitionSchema.parse({
        type: 'report',
        payload: { of: 'sales' },
        cron: '0 * * * *',
        ...definition,
        ...over,
      }) as Definition,
    );
  await put();
  const leader = firing();
  return {
    log,
    mirror,
    marks,
    schedules,
    world,
    put,
    firing,
    leader,
    /** One pass at a time of the day, such as `13:00`. */
    passAt: async (time: string, by_ = leader) => {
      world.now = Date.parse(`2026-11-29T${time.length === 5 ? `${time}:00` : time}Z`);
      return by_.runOnce();
    },
    /** The slots that have a task, `HH:MM` each. */
    slots: () =>
      log.events.flatMap(({ event }) =>
        event.kind === 'INGESTED'
          ? [new Date(event.data.schedule?.slotAt ?? 0).toISOString().slice(11, 16)]
          : [],
      ),
    kinds: () => log.events.map(({ event }) => event.kind),
    /** The task of a slot ends. */
    cancel: async (slotAt: number) => {
      const taskId = taskIdOfSlot('acme', 'report', slotAt);
      const state = await log.readState('acme', taskId);
      const decided = decide(state, {
        kind: 'request_cancel',
        eventId: '00000000-0000-4000-8000-000000000001',
        at: world.now,
        actor: by,
      });
      if (!decided.ok) throw decided.error;
      await log.append(decided.value, state?.seq ?? 0);
    },
  };
}

describe('a slot', () => {
  test('that is due becomes one task, which says whose it is; the next pass waits for the next slot', async () => {
    const { passAt, log, marks } = await setup();
    expect(await passAt('12:59')).toEqual({ fired: 0, skipped: 0, failed: 0, nextAt: NOON + HOUR });
    expect(await passAt('13:00')).toEqual({ fired: 1, skipped: 0, failed: 0, nextAt: NOON + 2 * HOUR });
    expect(await passAt('13:00')).toMatchObject({ fired: 0 });
    const taskId = taskIdOfSlot('acme', 'report', NOON + HOUR);
    expect(log.events.map(({ event }) => event)).toEqual([
      expect.objectContaining({
        kind: 'INGESTED',
        taskId,
        tenant: 'acme',
        type: 'report',
        priority: 3,
        data: { payload: { of: 'sales' }, schedule: { name: 'report', slotAt: NOON + HOUR } },
      }),
    ]);
    expect(marks.get('acme.report')).toEqual({ slotAt: NOON + HOUR, taskId });
  });

  test('is fired once by two who both believe that they lead', async () => {
    const { passAt, firing, slots } = await setup();
    const other = firing();
    await Promise.all([passAt('13:00'), passAt('13:00', other)]);
    await Promise.all([passAt('14:00'), passAt('14:00', other)]);
    expect(slots()).toEqual(['13:00', '14:00']);
  });

  test('is not fired again when the process died between the task and the mark', async () => {
    const { passAt, firing, slots, marks } = await setup();
    await passAt('13:00');
    await marks.change('acme.report', () => undefined);
    expect(await passAt('13:00:05', firing())).toMatchObject({ failed: 0 });
    expect(slots()).toEqual(['13:00']);
    expect(marks.get('acme.report')?.slotAt).toBe(NOON + HOUR);
  });

  test.each(['down', 'unheard'] as const)(
    'whose append was %s is tried again until the log has it',
    async (fault) => {
      const { passAt, log, slots, marks } = await setup();
      log.fault('INGESTED', [fault]);
      expect(await passAt('13:00')).toEqual({ fired: 0, skipped: 0, failed: 1, nextAt: NOON + HOUR + 1_000 });
      expect(marks.get('acme.report')).toBeUndefined();
      expect(await passAt('13:00:01')).toMatchObject({ fired: 1, failed: 0 });
      expect(slots()).toEqual(['13:00']);
    },
  );

  test('in the middle of which the leader changes is fired by the new one, whatever the policy for missed slots', async () => {
    const { passAt, firing, slots, world } = await setup({ missed: 'skip' });
    world.mayFire = false;
    await passAt('13:00');
    expect(slots()).toEqual([]);
    world.mayFire = true;
    await passAt('13:00:10', firing());
    expect(slots()).toEqual(['13:00']);
  });
});

describe('slots that nobody was there to fire', () => {
  test.each([
    [{ missed: 'skip' }, ['13:00', '17:00']],
    [{ missed: 'latest' }, ['13:00', '16:00', '17:00']],
    [{ missed: 'all' }, ['13:00', '14:00', '15:00', '16:00', '17:00']],
    [{ missed: 'all', missedLimit: 2 }, ['13:00', '15:00', '16:00', '17:00']],
  ] as const)('with %j', async (policy, expected) => {
    const { passAt, firing, slots } = await setup(policy);
    await passAt('13:00');
    const later = firing();
    expect(await passAt('16:30', later)).toMatchObject({ nextAt: NOON + 5 * HOUR });
    await passAt('16:31', firing());
    await passAt('17:00', later);
    expect(slots()).toEqual(expected);
  });
});

describe('while the task of the slot before has not ended', () => {
  test('`allow` fires all the same', async () => {
    const { passAt, kinds } = await setup();
    await passAt('13:00');
    await passAt('14:00');
    expect(kinds()).toEqual(['INGESTED', 'INGESTED']);
  });

  test('`skip` passes the slot over, and fires again when it has ended', async () => {
    const { passAt, slots, cancel } = await setup({ overlap: 'skip' });
    await passAt('13:00');
    expect(await passAt('14:00')).toMatchObject({ fired: 0, skipped: 1, nextAt: NOON + 3 * HOUR });
    expect(await passAt('15:00')).toMatchObject({ skipped: 1 });
    await cancel(NOON + HOUR);
    expect(await passAt('16:00')).toMatchObject({ fired: 1 });
    expect(slots()).toEqual(['13:00', '16:00']);
  });

  test('`cancel-previous` asks it to end', async () => {
    const { passAt, kinds } = await setup({ overlap: 'cancel-previous' });
    await passAt('13:00');
    await passAt('14:00');
    await passAt('15:00');
    expect(kinds()).toEqual(['INGESTED', 'CANCELLED', 'INGESTED', 'CANCELLED', 'INGESTED']);
  });
});

describe('a schedule that is changed', () => {
  test('does not fire its old slots, nor those of its new timing from before', async () => {
    const { passAt, put, slots, world } = await setup({ missed: 'all' });
    await passAt('13:00');
    world.now = NOON + 3.5 * HOUR;
    await put({ cron: '15 * * * *' });
    await passAt('15:31');
    await passAt('16:15');
    expect(slots()).toEqual(['13:00', '16:15']);
  });

  test('in its payload only keeps the slot that is due at that moment, and its count of elapsed time', async () => {
    const every: Partial<Definition> = { cron: undefined, every: '7m' };
    const { passAt, put, slots, world, log } = await setup(every);
    world.now = NOON + 7 * MINUTE + 2;
    await put({ ...every, payload: 'new' });
    await passAt('12:07:01');
    await passAt('12:14');
    expect(slots()).toEqual(['12:07', '12:14']);
    expect(log.events[0]?.event).toMatchObject({ data: { payload: 'new' } });
  });

  test('to what it is already is not changed', async () => {
    const { put, schedules, world } = await setup();
    world.now += HOUR;
    expect(await put()).toMatchObject({ version: 1, changedAt: '2026-11-29T12:00:00.000Z' });
    expect(await put({ priority: 1 })).toMatchObject({ version: 2, since: '2026-11-29T12:00:00.000Z' });
    expect(schedules.list('acme')).toHaveLength(1);
    expect(schedules.list('zeta')).toEqual([]);
  });

  test('and changed back does not fire a slot twice', async () => {
    const { passAt, put, slots, world } = await setup();
    await passAt('13:00');
    await put({ cron: '30 * * * *' });
    world.now -= 2_000;
    await put();
    await passAt('13:00:01');
    expect(slots()).toEqual(['13:00']);
  });

  test('or removed during a pass fires no more', async () => {
    const { passAt, schedules, slots } = await setup();
    await schedules.remove(KEY);
    expect(await passAt('13:00')).toMatchObject({ fired: 0, nextAt: Number.POSITIVE_INFINITY });
    expect(slots()).toEqual([]);
    await expect(schedules.remove(KEY)).rejects.toMatchObject({ code: 'schedule_not_found' });
  });
});

describe('a pause', () => {
  test('says who and why, fires nothing, and is not made up for', async () => {
    const { passAt, schedules, slots, world } = await setup({ missed: 'all' });
    await passAt('13:00');
    const paused = await schedules.pause({ ...KEY, by, now: world.now }, 'month end');
    expect(paused.paused).toEqual({ at: '2026-11-29T13:00:00.000Z', by, reason: 'month end' });
    expect(await passAt('15:00')).toMatchObject({ fired: 0, nextAt: Number.POSITIVE_INFINITY });
    world.now += 10 * MINUTE;
    expect((await schedules.resume({ ...KEY, by, now: world.now })).paused).toBeUndefined();
    await passAt('15:11');
    await passAt('16:00');
    expect(slots()).toEqual(['13:00', '16:00']);
  });

  test('outlives a change of the schedule', async () => {
    const { put, schedules, world } = await setup();
    await schedules.pause({ ...KEY, by, now: world.now }, undefined);
    expect((await put({ payload: 'new' })).paused).toBeDefined();
  });
});

test('a schedule that cannot be read does not stop the others', async () => {
  const { passAt, put, mirror, slots } = await setup();
  await mirror.put('acme.bad', { ...(await put()), name: 'bad', cron: 'often' });
  expect(await passAt('13:00')).toMatchObject({ fired: 1, failed: 0 });
  expect(slots()).toEqual(['13:00']);
});
