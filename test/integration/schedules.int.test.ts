import { afterAll, afterEach, describe, expect, test } from 'vitest';
import type { Recorded } from '../../src/domain/events.ts';
import { openLog } from '../../src/log/open.ts';
import { createLogReader } from '../../src/log/reader.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { connectNats } from '../../src/platform/nats.ts';
import { createScheduler } from '../../src/schedules/scheduler.ts';
import { call, startApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

/** Short enough to wait for, and long enough for a leader that the machine holds up. */
const LEASE_MS = 5_000;
const api = await startApi(import.meta.url, { config: { leaderLeaseMs: LEASE_MS } });
const stops: (() => Promise<void>)[] = [];
const ingested: Recorded[] = [];
const reader = createLogReader(
  { nc: api.nc, names: api.names, logger: silentLogger },
  { fromSeq: 1, maxBatch: 100, gatherMs: 0, onBatch: ({ events }) => void ingested.push(...events) },
);
await reader.start();

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});
afterAll(async () => {
  await reader.stop();
  await api.stop();
});

/** A scheduler on a connection of its own. `kill` cuts it off without a word, as the death of its process would. */
async function startScheduler() {
  const nc = await connectNats(api.config, 'scheduler under test');
  const parts = { nc, names: api.names, config: api.config, logger: silentLogger };
  const log = await openLog(parts);
  const scheduler = createScheduler({ ...parts, log, clock: systemClock });
  stops.push(async () => {
    await scheduler.stop();
    await log.close();
    await nc.close();
  });
  await scheduler.start();
  return { scheduler, kill: () => nc.close() };
}

const put = (name: string, body: object, key = api.keys.acme) =>
  call(api.http, 'PUT', `/v1/schedules/${name}`, {
    key,
    body: { type: 'report', payload: { of: 'sales' }, ...body },
  });
const post = (path: string, body?: unknown, key = api.keys.acme) =>
  call(api.http, 'POST', `/v1/schedules/${path}`, { key, ...(body === undefined ? {} : { body }) });
const get = (path: string, key = api.keys.acme) => call(api.http, 'GET', `/v1/schedules${path}`, { key });

const slotsFired = (name: string): number[] =>
  ingested.flatMap(({ event }) =>
    event.kind === 'INGESTED' && event.data.schedule?.name === name ? [event.data.schedule.slotAt ?? 0] : [],
  );
const gapsOf = (slots: readonly number[]): number[] =>
  slots.slice(1).map((slot, index) => slot - (slots[index] ?? 0));

describe('slots', () => {
  test('are neither missed nor doubled when the leader dies in the middle', async () => {
    await put('every-second', { cron: '* * * * * *', missed: 'all' });
    const first = await startScheduler();
    const second = await startScheduler();
    expect([first.scheduler.isLeader(), second.scheduler.isLeader()]).toEqual([true, false]);
    await eventually(() => expect(slotsFired('every-second').length).toBeGreaterThan(2));
    await first.kill();
    const before = slotsFired('every-second').length;
    await eventually(() => expect(slotsFired('every-second').length).toBeGreaterThan(before + 3));
    expect(second.scheduler.isLeader()).toBe(true);
    const third = await startScheduler();
    await second.scheduler.stop();
    const then = slotsFired('every-second').length;
    await eventually(() => expect(slotsFired('every-second').length).toBeGreaterThan(then + 1));
    await eventually(() => third.scheduler.isLeader());
    const slots = slotsFired('every-second');
    expect(gapsOf(slots)).toEqual(Array(slots.length - 1).fill(1_000));
    await call(api.http, 'DELETE', '/v1/schedules/every-second', { key: api.keys.acme });
  });

  test('are fired, and none before its time, by a schedule that is put while the scheduler sleeps; a pause is heard of as early as a change after it', async () => {
    await startScheduler();
    const made = await put('punctual', { every: 1_000 });
    expect(made.status).toBe(201);
    await eventually(() => expect(slotsFired('punctual').length).toBeGreaterThan(2));
    const lateMs = ingested.flatMap(({ event, storedAt }) =>
      event.kind === 'INGESTED' && event.data.schedule?.name === 'punctual'
        ? [storedAt - (event.data.schedule.slotAt ?? 0)]
        : [],
    );
    expect(Math.min(...lateMs)).toBeGreaterThanOrEqual(-2);
    await post('punctual/pause', { reason: 'enough' });
    await put('other', { every: 1_000 });
    await eventually(() => expect(slotsFired('other').length).toBeGreaterThan(2));
    const fired = ingested.map(({ event }) => event.kind === 'INGESTED' && event.data.schedule?.name);
    expect(fired.slice(fired.indexOf('other'))).not.toContain('punctual');
    await post('other/pause');
  });
});

describe('a schedule', () => {
  test('is put, read, listed and removed by its own tenant only', async () => {
    const made = await put('nightly', { cron: '30 2 * * *', timeZone: 'Europe/Berlin', priority: 4 });
    expect(made.status).toBe(201);
    expect(made.body).toMatchObject({
      tenant: 'acme',
      name: 'nightly',
      version: 1,
      overlap: 'allow',
      missed: 'latest',
      changedBy: { kind: 'key' },
      nextAt: expect.stringMatching(/T0[01]:30:00.000Z$/),
    });
    expect((await put('nightly', { cron: '30 3 * * *' })).body).toMatchObject({
      version: 2,
      timeZone: 'UTC',
    });
    expect((await get('/nightly')).body.version).toBe(2);
    expect((await get('')).body.schedules.map(({ name }: { name: string }) => name)).toContain('nightly');
    expect((await get('', api.keys.zeta)).body.schedules).toEqual([]);
    expect((await get('/nightly', api.keys.zeta)).body.error.code).toBe('schedule_not_found');
    expect((await get('/nightly?tenant=acme', api.keys.operator)).status).toBe(200);
    const removed = await call(api.http, 'DELETE', '/v1/schedules/nightly', { key: api.keys.acme });
    expect(removed.status).toBe(204);
    expect((await get('/nightly')).status).toBe(404);
    expect((await call(api.http, 'DELETE', '/v1/schedules/nightly', { key: api.keys.acme })).status).toBe(
      404,
    );
    expect((await put('nightly', { cron: '0 0 * * *' })).body.version).toBe(1);
  });

  test('shows its next slots in UTC and on its own clock, over a change of the clock', async () => {
    await put('dst', {
      cron: '30 1 * * *',
      timeZone: 'America/New_York',
      startAt: '2027-11-06T00:00:00-04:00',
    });
    const { body } = await get('/dst/next?count=3');
    expect(body).toMatchObject({ timeZone: 'America/New_York', timeZoneData: process.versions.tz });
    expect(body.slots).toEqual([
      { at: '2027-11-06T05:30:00.000Z', local: '2027-11-06T01:30:00.000-04:00' },
      { at: '2027-11-07T05:30:00.000Z', local: '2027-11-07T01:30:00.000-04:00' },
      { at: '2027-11-08T06:30:00.000Z', local: '2027-11-08T01:30:00.000-05:00' },
    ]);
  });

  test('is run by hand, paused or not', async () => {
    await put('by-hand', { cron: '0 0 1 1 *' });
    expect((await post('by-hand/pause', { reason: 'holidays' })).body).toMatchObject({
      paused: { reason: 'holidays', by: { kind: 'key' } },
      nextAt: null,
    });
    const run = await post('by-hand/run');
    expect(run.status).toBe(201);
    await reader.whenReached(run.body.seq);
    expect(ingested.at(-1)?.event).toMatchObject({
      taskId: run.body.id,
      actor: { kind: 'key' },
      data: { schedule: { name: 'by-hand' }, payload: { of: 'sales' } },
    });
    expect((await post('by-hand/resume')).body.paused).toBeUndefined();
  });

  test.each([
    [{}, 'schedule_invalid', 'cron'],
    [{ cron: '* * * * *', every: '1m' }, 'schedule_invalid', 'every'],
    [{ cron: '61 * * * *' }, 'schedule_invalid', 'cron'],
    [{ cron: '0 0 30 2 *' }, 'schedule_invalid', 'cron'],
    [{ cron: '* * * * *', timeZone: 'Mars/Olympus' }, 'schedule_invalid', 'timeZone'],
    [{ every: '1m', endAt: '2020-01-01T00:00:00Z' }, 'schedule_invalid', 'endAt'],
    [{ every: '1fortnight' }, 'request_invalid', 'every'],
    [{ every: 10 }, 'request_invalid', 'every'],
    [{ every: '1m', overlap: 'maybe' }, 'request_invalid', 'overlap'],
    [{ every: '1m', extra: 1 }, 'request_invalid', 'extra'],
    [{ every: '1m', payload: 'nul \0' }, 'payload_has_nul', 'payload'],
  ])('cannot be %j', async (body, code, field) => {
    const answer = await put('impossible', body);
    expect({ status: answer.status, ...answer.body.error }).toMatchObject({ status: 400, code, field });
    expect((await get('/impossible')).status).toBe(404);
  });
});

test('a timing can be tried out without storing anything', async () => {
  const { status, body } = await post('preview', { cron: '0 9 * * MON', timeZone: 'Asia/Kolkata', count: 2 });
  expect(status).toBe(200);
  expect(body.slots).toHaveLength(2);
  expect(body.slots[0].at).toMatch(/T03:30:00.000Z$/);
  expect(body.slots[0].local).toMatch(/T09:00:00.000\+05:30$/);
  expect((await post('preview', { cron: 'never' })).body.error).toMatchObject({ code: 'schedule_invalid' });
});
