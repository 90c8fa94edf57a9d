import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createProjector } from '../../projections/engine/projector.ts';
import { projections } from '../../projections/projections.ts';
import { execute } from '../../src/log/handle.ts';
import { silentLogger } from '../../src/observe/log.ts';
import type { Service } from '../../src/platform/service.ts';
import { createQuery } from '../../src/query/postgres-query.ts';
import { call, startApi } from '../support/api.ts';
import { openModelDatabase } from '../support/read-models.ts';

const database = await openModelDatabase(import.meta.url);
let query: Service | undefined;
const api = await startApi(import.meta.url, {
  queryOn: (nc, names) => {
    const made = createQuery({ pool: database.pool, nc, names, logger: silentLogger });
    query = made;
    return made;
  },
});
const { nc, names, config, clock } = api;
const projector = createProjector({
  nc,
  names,
  config,
  pool: database.pool,
  projections: projections(config),
  clock,
  logger: silentLogger,
});
beforeAll(async () => {
  await projector.start();
  await query?.start();
});
afterAll(async () => {
  await projector.stop();
  await query?.stop();
  await api.stop();
  await database.close();
});

const { acme, zeta, operator } = api.keys;
const submit = async (body: object, key = acme) =>
  (await call(api.http, 'POST', '/v1/tasks', { key, body: { payload: 1, ...body } })).body;
const get = (url: string, key = acme) => call(api.http, 'GET', url, { key });

describe('read your writes', () => {
  test('?wait=<seq> answers with what was just submitted, and says the position', async () => {
    const { id, seq } = await submit({ type: 'mail', payload: { to: 'a' }, priority: 3 });
    const { status, headers, body } = await get(`/v1/tasks/${id}?wait=${seq}`);
    expect(status).toBe(200);
    expect(body.task).toMatchObject({
      id,
      tenant: 'acme',
      type: 'mail',
      status: 'INGESTED',
      priority: 3,
      payload: { to: 'a' },
      seq,
    });
    expect(body.position).toBeGreaterThanOrEqual(seq);
    expect(headers['taskledger-position']).toBe(String(body.position));
  });

  test('a cancellation and its events', async () => {
    const { id } = await submit({ type: 'mail' });
    const cancelled = await call(api.http, 'POST', `/v1/tasks/${id}/cancel`, {
      key: acme,
      body: { reason: 'why not' },
    });
    const { body } = await get(`/v1/tasks/${id}/events?wait=${cancelled.body.seq}`);
    expect(body.events.map(({ kind }: { kind: string }) => kind)).toEqual(['INGESTED', 'CANCELLED']);
    expect(body.events[1]).toMatchObject({ data: { reason: 'why not' }, actor: { kind: 'key' } });
  });
});

describe('a waiting task', () => {
  const patch = (id: string, body: object, key = acme) =>
    call(api.http, 'PATCH', `/v1/tasks/${id}`, { key, body });

  test('gets another priority and due time, as an event, in its row and in the counts', async () => {
    const { id } = await submit({ type: 'moved', priority: 3, delayMs: 60_000 });
    const runAt = new Date(Date.now() + 120_000).toISOString();
    const moved = await patch(id, { priority: 1, runAt });
    expect(moved).toMatchObject({ status: 200, body: { id, status: 'INGESTED', priority: 1, dueAt: runAt } });
    const { seq } = moved.body;
    expect((await get(`/v1/tasks/${id}?wait=${seq}`)).body.task).toMatchObject({ priority: 1, dueAt: runAt });
    expect((await get(`/v1/tasks/${id}/events`)).body.events[1]).toMatchObject({
      kind: 'RESCHEDULED',
      actor: { kind: 'key' },
      data: { fromPriority: 3 },
    });
    expect((await get('/v1/queues?type=moved')).body.queues[0].priorities).toEqual([
      { priority: 1, counts: { INGESTED: 1 } },
    ]);
    expect((await patch(id, { runAt: null })).body.dueAt).toBeNull();
  });

  test("keeps its place when the wish is another tenant's, makes no sense, or comes too late", async () => {
    const { id } = await submit({ type: 'moved' });
    expect((await patch(id, { priority: 1 }, zeta)).body.error.code).toBe('task_not_found');
    expect((await patch(id, {})).body.error.code).toBe('request_invalid');
    expect((await patch(id, { priority: 9 })).body.error).toMatchObject({ field: 'priority' });
    expect((await patch(id, { runAt: 'tomorrow' })).body.error.code).toBe('run_at_invalid');
    expect((await patch(id, { runAt: null, delayMs: 5 })).body.error.field).toBe('delayMs');
    await execute(api.log, { tenant: 'acme', taskId: id }, () => ({
      kind: 'queue',
      eventId: randomUUID(),
      at: Date.now(),
      actor: { kind: 'dispatcher', id: 'd1' },
      inlinePayload: true,
    }));
    const late = await patch(id, { priority: 1 });
    expect(late).toMatchObject({ status: 409, body: { error: { code: 'task_handed_out' } } });
  });
});

test('a refused submission by message can be looked up with its reasons', async () => {
  const taskId = '0197b1f0-0000-7000-8000-0000000000ff';
  const reasons = [{ code: 'payload_has_nul', field: 'payload.a', message: 'no NUL' }];
  const actor = { kind: 'intake', id: 'gateway' } as const;
  const { seq } = await api.intake.reject({ tenant: 'acme', type: 'mail', taskId, reasons, actor });
  const { body } = await get(`/v1/tasks/${taskId}?wait=${seq}`);
  expect(body.task).toMatchObject({ status: 'REJECTED', rejections: reasons });
  const events = await get(`/v1/tasks/${taskId}/events`);
  expect(events.body.events).toEqual([expect.objectContaining({ kind: 'REJECTED', data: { reasons } })]);
});

describe('tenants are apart', () => {
  test("another tenant's task and events are 404; an operator sees both", async () => {
    const { id, seq } = await submit({ type: 'mail' });
    for (const url of [`/v1/tasks/${id}?wait=${seq}`, `/v1/tasks/${id}/events?wait=${seq}`]) {
      const foreign = await get(url, zeta);
      expect(foreign.status).toBe(404);
      expect(foreign.body.error.code).toBe('task_not_found');
      expect((await get(url, operator)).status).toBe(200);
      expect((await get(`${url}&tenant=zeta`, operator)).status).toBe(404);
    }
  });

  test('lists and queues show the own tenant only', async () => {
    const { seq } = await submit({ type: 'mine' }, zeta);
    const list = await get(`/v1/tasks?wait=${seq}`, acme);
    expect(new Set(list.body.tasks.map(({ tenant }: { tenant: string }) => tenant))).toEqual(
      new Set(['acme']),
    );
    const queues = await get('/v1/queues', zeta);
    expect(new Set(queues.body.queues.map(({ tenant }: { tenant: string }) => tenant))).toEqual(
      new Set(['zeta']),
    );
  });
});

test('a list is filtered and paged, newest first', async () => {
  let seq = 0;
  const ids: string[] = [];
  for (let n = 0; n < 5; n += 1) {
    const made = await submit({ type: 'paged', payload: n });
    ids.unshift(made.id);
    seq = made.seq;
  }
  const seen: string[] = [];
  let cursor = '';
  do {
    const { body } = await get(`/v1/tasks?type=paged&status=INGESTED,QUEUED&limit=2&wait=${seq}${cursor}`);
    seen.push(...body.tasks.map(({ id }: { id: string }) => id));
    cursor = body.nextCursor === null ? '' : `&cursor=${encodeURIComponent(body.nextCursor)}`;
  } while (cursor !== '');
  expect(seen).toEqual(ids);
  expect((await get('/v1/tasks?type=paged&status=COMPLETED')).body.tasks).toEqual([]);
  expect((await get('/v1/tasks?cursor=nonsense')).body.error.code).toBe('cursor_invalid');
  const future = encodeURIComponent(new Date(Date.now() + 60_000).toISOString());
  expect((await get(`/v1/tasks?type=paged&submittedFrom=${future}`)).body.tasks).toEqual([]);
  expect((await get(`/v1/tasks?type=paged&submittedTo=${future}&submittedFrom=0`)).body.tasks).toHaveLength(
    5,
  );
});

test('queues count by type, with each priority and the backlog', async () => {
  await submit({ type: 'counted', priority: 1 });
  await submit({ type: 'counted', priority: 4 });
  const { seq } = await submit({ type: 'counted', priority: 4 });
  const { body } = await get(`/v1/queues?type=counted&wait=${seq}`);
  expect(body.queues).toEqual([
    {
      tenant: 'acme',
      type: 'counted',
      counts: { INGESTED: 3 },
      priorities: [
        { priority: 1, counts: { INGESTED: 1 } },
        { priority: 4, counts: { INGESTED: 2 } },
      ],
      pauses: [],
      noWorkers: [],
      backlog: {
        waiting: null,
        limit: 100_000,
        full: false,
        delayed: { waiting: null, limit: 1_000_000, full: false },
      },
      intake: { state: 'open', reasons: [] },
    },
  ]);
});

test('waiting for what will not come is 504 after five seconds', async () => {
  const { status, body } = await get('/v1/queues?wait=999999999');
  expect(status).toBe(504);
  expect(body.error).toMatchObject({ code: 'position_not_reached', retryable: true });
});

test('readiness names the durability level and the lag', async () => {
  const { status, body } = await get('/readyz');
  expect(status).toBe(200);
  expect(body).toMatchObject({
    ready: true,
    durability: { replicas: 1, meaning: expect.stringContaining('One copy') },
    lag: expect.any(Number),
    checks: { nats: { ok: true }, log: { ok: true }, readModels: { ok: true } },
  });
});

test('metrics count requests by route and submissions by outcome, and name no tenant', async () => {
  await submit({ type: 'a.b' });
  const { text, headers } = await get('/metrics');
  expect(headers['content-type']).toContain('text/plain');
  expect(text).toMatch(/taskledger_submissions_total\{via="http",outcome="accepted"\} \d+/);
  expect(text).toMatch(/taskledger_submissions_total\{via="http",outcome="name_invalid"\} 1/);
  expect(text).toContain('taskledger_http_requests_total{method="GET",route="/v1/tasks/:id",status="200"}');
  expect(text).toContain('taskledger_submission_append_seconds_count');
  expect(text).not.toContain('acme');
});

describe('the OpenAPI document', () => {
  test('shows every route with its schemas, its errors and the key it wants', async () => {
    const { body } = await get('/docs/json');
    const shown = Object.entries<Record<string, { security?: unknown; responses: object }>>(
      body.paths,
    ).flatMap(([path, methods]) => Object.keys(methods).map((method) => `${method} ${path}`));
    expect(shown).toEqual(
      expect.arrayContaining([
        'post /v1/tasks',
        'post /v1/tasks/batch',
        'get /v1/tasks',
        'get /v1/tasks/{id}',
        'get /v1/tasks/{id}/events',
        'post /v1/tasks/{id}/cancel',
        'get /v1/queues',
        'get /v1/types',
        'put /v1/types/{type}',
        'get /readyz',
      ]),
    );
    const post = body.paths['/v1/tasks'].post;
    expect(post.security).toEqual([{ apiKey: [] }]);
    expect(post.requestBody.content['application/json'].schema.required).toEqual(
      expect.arrayContaining(['type']),
    );
    expect(Object.keys(post.responses)).toEqual(
      expect.arrayContaining(['200', '201', '400', '401', '409', '413', '429', '503']),
    );
  });

  test('is shown as a page', async () => {
    const { status, text } = await get('/docs');
    expect([200, 302]).toContain(status);
    expect(text).toBeDefined();
  });
});
