import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createProjector } from '../../projections/engine/projector.ts';
import { projections } from '../../projections/projections.ts';
import { createDispatcher } from '../../src/dispatch/dispatcher.ts';
import { createWorker, type Worker } from '../../src/index.ts';
import { clockOfServers } from '../../src/log/server-clock.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { cancelTasks } from '../../src/operations/cancel-tasks.ts';
import { createOperationRunner } from '../../src/operations/runner.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Service } from '../../src/platform/service.ts';
import { createQuery } from '../../src/query/postgres-query.ts';
import type { Query } from '../../src/query/query.ts';
import { call, startApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { openModelDatabase } from '../support/read-models.ts';
import { testNatsUrl } from '../support/servers.ts';

/** API, projector, dispatcher and a worker, as one installation. */
const database = await openModelDatabase(import.meta.url);
let made: (Query & Service) | undefined;
const api = await startApi(import.meta.url, {
  queryOn: (nc, names) => {
    made = createQuery({ pool: database.pool, nc, names, logger: silentLogger });
    return made;
  },
});
const { nc, names, config, log, operations } = api;
const parts = { nc, names, config, clock: systemClock, logger: silentLogger };
const query = made as unknown as Query & Service;
const runner = createOperationRunner({
  ...parts,
  operations,
  kinds: [cancelTasks({ log, clock: systemClock, tasks: query })],
  leaseMs: 10_000,
});
const dispatcher = createDispatcher({ ...parts, log, clock: clockOfServers(nc, names) });
const services: Service[] = [
  createProjector({ ...parts, pool: database.pool, projections: projections(config) }),
  query,
  dispatcher,
  runner,
];
let worker: Worker;
const begun = new Set<string>();
beforeAll(async () => {
  for (const service of services) await service.start();
  await dispatcher.whenLeader();
  worker = createWorker({
    nats: testNatsUrl(),
    prefix: config.prefix,
    logger: silentLogger,
    concurrency: 2,
    shutdownGraceMs: 200,
    types: {
      patient: async ({ task, signal }) => {
        begun.add(task.id);
        await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)));
      },
      quick: async () => ({ ok: true }),
    },
  });
  await worker.start();
});
afterAll(async () => {
  await worker.stop();
  for (const service of services.reverse()) await service.stop();
  await api.stop();
  await database.close();
});

const { acme, zeta, operator } = api.keys;
const acmeAdmin = await api.keyOf('acme', ['admin']);
const post = (url: string, body: object = {}, key = acmeAdmin) => call(api.http, 'POST', url, { key, body });
const get = (url: string, key = acme) => call(api.http, 'GET', url, { key });
const submit = async (body: object, key = acme): Promise<{ id: string; seq: number }> =>
  (await call(api.http, 'POST', '/v1/tasks', { key, body: { payload: 1, ...body } })).body;
const statusOf = async (id: string) => (await log.readState('acme', id))?.status;
const kindsOf = async (id: string) => (await log.readTask('acme', id)).map(({ event }) => event.kind);

describe('a cancellation', () => {
  test('of a running task is asked for, observed by its worker, and ends the attempt; each step is an event', async () => {
    const { id } = await submit({ type: 'patient' });
    await eventually(() => begun.has(id));
    const asked = await call(api.http, 'POST', `/v1/tasks/${id}/cancel`, {
      key: acme,
      body: { reason: 'wrong clip' },
    });
    expect(asked.body).toMatchObject({ event: 'CANCEL_REQUESTED', status: 'PROCESSING' });
    await eventually(async () => expect(await statusOf(id)).toBe('CANCELLED'));
    expect(await kindsOf(id)).toEqual([
      'INGESTED',
      'QUEUED',
      'CLAIMED',
      'PROCESSING',
      'CANCEL_REQUESTED',
      'CANCELLED',
    ]);
    const events = await log.readTask('acme', id);
    expect(events.at(-2)?.event.actor.kind).toBe('key');
    expect(events.at(-1)?.event.actor).toEqual({ kind: 'worker', id: worker.id });
  });
});

describe('a cancellation by filter', () => {
  const ended = (id: string) =>
    eventually(async () => {
      const { body } = await get(`/v1/cancellations/${id}`);
      return body.state === 'done' ? body : false;
    });

  test('counts and shows what it would cancel, and cancels nothing, when it is a dry run', async () => {
    const { id } = await submit({ type: 'dry', delayMs: 600_000 });
    const { status, body } = await post('/v1/cancellations', {
      filter: { type: 'dry' },
      reason: 'test',
      dryRun: true,
    });
    expect(status).toBe(200);
    expect(body).toMatchObject({ dryRun: true, count: 1, atLeast: false, sample: [{ id }] });
    expect(await statusOf(id)).toBe('INGESTED');
  });

  test('cancels waiting tasks at once and asks for running ones; other types and tenants stay', async () => {
    const run = await submit({ type: 'patient' });
    await eventually(() => begun.has(run.id));
    const waiting: string[] = [];
    for (let n = 0; n < 250; n += 1) waiting.push((await submit({ type: 'patient', delayMs: 600_000 })).id);
    const other = await submit({ type: 'dry', delayMs: 600_000 });
    const foreign = await submit({ type: 'patient', delayMs: 600_000 }, zeta);
    const { status, headers, body } = await post('/v1/cancellations', {
      filter: { type: 'patient' },
      reason: 'recall',
    });
    expect(status).toBe(202);
    expect(headers['location']).toBe(`/v1/cancellations/${body.id}`);
    expect((await ended(body.id)).progress).toEqual({
      expected: 251,
      matched: 251,
      cancelled: 250,
      requested: 1,
      skipped: 0,
      failed: 0,
    });
    for (const id of waiting) expect(await statusOf(id)).toBe('CANCELLED');
    await eventually(async () => expect(await statusOf(run.id)).toBe('CANCELLED'));
    expect(await statusOf(other.id)).toBe('INGESTED');
    expect((await log.readState('zeta', foreign.id))?.status).toBe('INGESTED');
    const [, cancelled] = await log.readTask('acme', waiting[0] ?? '');
    expect(cancelled?.event).toMatchObject({ kind: 'CANCELLED', data: { reason: 'recall' } });
    expect((await get(`/v1/cancellations/${body.id}`, zeta)).status).toBe(404);
    expect((await get('/v1/cancellations', zeta)).body.cancellations).toEqual([]);
    expect((await get('/v1/cancellations', acme)).body.cancellations[0].id).toBe(body.id);
    expect((await post(`/v1/cancellations/${body.id}/abort`)).body.error.code).toBe('operation_ended');
  });

  test('recognises what it did before its process died', async () => {
    const { id } = await submit({ type: 'repeated', delayMs: 600_000 });
    const kind = cancelTasks({ log, clock: systemClock, tasks: query });
    const operation = await operations.begin({
      kind: 'of a test',
      tenant: 'acme',
      input: { filter: { type: 'repeated' }, reason: 'r' },
      actor: { kind: 'key', id: 'k' },
      asOf: 0,
    });
    const target = { tenant: 'acme', taskId: id };
    expect(await kind.act(operation, target)).toBe('cancelled');
    expect(await kind.act(operation, target)).toBe('cancelled');
    expect(await kind.act({ ...operation, id: crypto.randomUUID() }, target)).toBe('skipped');
    expect(await kindsOf(id)).toEqual(['INGESTED', 'CANCELLED']);
  });

  test('leaves alone what is submitted after it, however late it begins', async () => {
    const { id, seq } = await submit({ type: 'later', delayMs: 600_000 });
    const later = await submit({ type: 'later', delayMs: 600_000 });
    await query.waitFor(later.seq, 60_000);
    const kind = cancelTasks({ log, clock: systemClock, tasks: query });
    const operation = await operations.begin({
      kind: 'of a test',
      tenant: 'acme',
      input: { filter: { type: 'later' }, reason: 'r' },
      actor: { kind: 'key', id: 'k' },
      asOf: seq,
    });
    expect(await kind.page(operation, { cursor: null, limit: 10 })).toEqual({
      targets: [{ tenant: 'acme', taskId: id }],
      nextCursor: null,
    });
  });

  test('keeps within its rate, and is paused, resumed and aborted over HTTP', async () => {
    for (let n = 0; n < 40; n += 1) await submit({ type: 'slow', delayMs: 600_000 });
    const { body } = await post('/v1/cancellations', {
      filter: { type: 'slow' },
      reason: 'r',
      ratePerSecond: 4,
    });
    const steer = async (wish: string) => (await post(`/v1/cancellations/${body.id}/${wish}`)).body.state;
    expect(await steer('pause')).toBe('paused');
    expect(await steer('resume')).toBe('running');
    expect(await steer('abort')).toBe('aborted');
    expect((await get(`/v1/cancellations/${body.id}`)).body).toMatchObject({
      state: 'aborted',
      ratePerSecond: 4,
      changedBy: { kind: 'key' },
    });
  });

  test('is refused without a filter, without a reason, for a foreign tenant and with a key that may not', async () => {
    const wish = { filter: { type: 'dry' }, reason: 'r' };
    expect((await post('/v1/cancellations', { ...wish, filter: {} })).body.error.field).toBe('filter');
    expect((await post('/v1/cancellations', { filter: wish.filter })).body.error.field).toBe('reason');
    const foreign = await post('/v1/cancellations', { ...wish, filter: { tenant: 'zeta' } });
    expect(foreign.body.error.code).toBe('tenant_forbidden');
    expect((await post('/v1/cancellations', wish, acme)).body.error.code).toBe('scope_missing');
  });
});

describe('a pause', () => {
  test('says who, why and until when, for the queues that it holds up', async () => {
    const { seq } = await submit({ type: 'held', delayMs: 600_000 });
    const until = new Date(Date.now() + 600_000).toISOString();
    const own = await post('/v1/queues/held/pause', { reason: 'provider is down', until });
    expect(own.body).toMatchObject({ tenant: 'acme', type: 'held', reason: 'provider is down', until });
    await post('/v1/tenants/acme/pause', { reason: 'unpaid' }, operator);
    await post('/v1/queues/other/pause', { reason: 'not this one' }, operator);
    const { body } = await get(`/v1/queues?type=held&wait=${seq}`);
    expect(body.queues[0].pauses).toMatchObject([
      { tenant: 'acme', type: 'held', reason: 'provider is down' },
      { tenant: 'acme', type: null, reason: 'unpaid', until: null, actor: expect.stringMatching(/^key:/) },
    ]);
    expect((await get('/v1/pauses', zeta)).body.pauses).toMatchObject([{ tenant: null, type: 'other' }]);
    expect((await post('/v1/queues/held/resume')).body).toEqual({ resumed: true });
    expect((await post('/v1/queues/held/resume')).body).toEqual({ resumed: false });
    expect((await post('/v1/tenants/acme/resume', {}, operator)).body.resumed).toBe(true);
    expect((await post('/v1/queues/other/resume', {}, operator)).body.resumed).toBe(true);
    expect((await get('/v1/pauses', operator)).body.pauses).toEqual([]);
  });

  test("is an operator's to set for a whole tenant, and never for another tenant", async () => {
    expect((await post('/v1/tenants/acme/pause', { reason: 'r' })).body.error.code).toBe('operator_only');
    const foreign = await post('/v1/queues/held/pause?tenant=zeta', { reason: 'r' });
    expect(foreign.body.error.code).toBe('tenant_forbidden');
    expect((await post('/v1/queues/held/pause', {})).body.error.field).toBe('reason');
    const past = await post('/v1/queues/held/pause', { reason: 'r', until: '2020-01-01T00:00:00Z' });
    expect(past.body.error.field).toBe('until');
    expect((await post('/v1/queues/held/pause', { reason: 'r' }, acme)).body.error.code).toBe(
      'scope_missing',
    );
  });
});

test('workers are listed with their slots and what they run, the tasks of other tenants left out', async () => {
  const { id } = await submit({ type: 'patient' });
  await eventually(async () => {
    const { body } = await get('/v1/workers?type=patient');
    expect(body.workers).toMatchObject([
      { id: worker.id, slots: 2, running: 1, tasks: [`acme/${id}`], alive: true, host: null },
    ]);
  });
  expect((await get('/v1/workers', zeta)).body.workers[0]).toMatchObject({ running: 1, tasks: [] });
  expect((await get('/v1/workers', operator)).body.workers[0].host).toEqual(expect.any(String));
  expect((await get('/v1/workers?type=nobody')).body.workers).toEqual([]);
  await post(`/v1/tasks/${id}/cancel`);
});

test('why a task is not running, or that it is', async () => {
  const why = async (id: string, key = acme) => (await get(`/v1/tasks/${id}/why`, key)).body;
  const later = await submit({ type: 'quick', delayMs: 600_000 });
  await eventually(async () => expect((await why(later.id)).sentence).toMatch(/it is due at 20/));
  const nobody = await submit({ type: 'nobody' });
  await eventually(async () =>
    expect((await why(nobody.id)).sentence).toContain('no worker for nobody is registered'),
  );
  await post('/v1/queues/paused/pause', { reason: 'provider is down' });
  // Until the dispatcher has heard of the pause, it queues what comes.
  await eventually(async () => {
    const paused = await submit({ type: 'paused' });
    const { sentence, facts } = await why(paused.id);
    expect(sentence).toMatch(/type paused is paused by key:\w+ \(provider is down\)/);
    expect(facts[0]).toMatchObject({ kind: 'paused', reason: 'provider is down' });
  });
  await post('/v1/queues/paused/resume');
  const run = await submit({ type: 'patient' });
  await eventually(async () => expect((await why(run.id)).sentence).toMatch(`attempt 1 since 20`));
  expect((await why(run.id)).facts[0]).toMatchObject({ kind: 'running', worker: worker.id });
  await post(`/v1/tasks/${run.id}/cancel`);
  await eventually(async () => expect((await why(run.id)).sentence).toMatch(/has ended: CANCELLED since/));
  expect((await why(run.id, zeta)).error.code).toBe('task_not_found');
});
