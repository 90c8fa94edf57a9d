import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { call, startApi } from '../support/api.ts';

const api = await startApi(import.meta.url);
afterAll(() => api.stop());
const { acme, zeta, operator } = api.keys;

const post = (body: unknown, key: string | undefined = acme, headers: Record<string, string> = {}) =>
  call(api.http, 'POST', '/v1/tasks', { key, body, headers });
const eventsOf = async (id: string, tenant = 'acme') =>
  (await api.log.readTask(tenant, id)).map(({ event }) => event);

test('a submitted task is INGESTED in the log', async () => {
  const { status, headers, body } = await post({
    type: 'transcode',
    payload: { clip: 'a.mov' },
    priority: 1,
  });
  expect(status).toBe(201);
  expect(body).toEqual({
    id: expect.any(String),
    status: 'INGESTED',
    seq: expect.any(Number),
    replayed: false,
  });
  expect(headers['location']).toBe(`/v1/tasks/${body.id}`);
  expect(await eventsOf(body.id)).toEqual([
    expect.objectContaining({
      kind: 'INGESTED',
      tenant: 'acme',
      type: 'transcode',
      priority: 1,
      actor: { kind: 'key', id: acme.split('_')[1] },
      data: { payload: { clip: 'a.mov' } },
    }),
  ]);
});

describe('idempotency', () => {
  test('a repeat answers 200 with the original', async () => {
    const key = 'order 17';
    const first = await post({ type: 'mail', payload: { to: 'a', n: 1 } }, acme, { 'idempotency-key': key });
    const repeat = await post({ payload: { n: 1, to: 'a' }, type: 'mail', idempotencyKey: key, delayMs: 5 });
    expect(first.status).toBe(201);
    expect(repeat.status).toBe(200);
    expect(repeat.headers['idempotency-replayed']).toBe('true');
    expect(repeat.body).toEqual({ ...first.body, replayed: true });
    expect(await eventsOf(first.body.id)).toHaveLength(1);
  });

  test('the same key with another payload or type is a conflict and writes nothing', async () => {
    const id = randomUUID();
    const first = await post({ type: 'mail', payload: 1, id });
    expect(first.body.id).toBe(id);
    for (const other of [
      { type: 'mail', payload: 2, id },
      { type: 'letter', payload: 1, id },
    ]) {
      const { status, body } = await post(other);
      expect(status).toBe(409);
      expect(body.error).toMatchObject({ code: 'idempotency_conflict', details: { taskId: id } });
    }
    expect(await eventsOf(id)).toHaveLength(1);
  });

  test('a UUID is the task id in any case of letters; another text names one task in each tenant', async () => {
    const id = randomUUID();
    expect((await post({ type: 'mail', payload: null, id: id.toUpperCase() })).body.id).toBe(id);
    const ours = await post({ type: 'mail', payload: null, id: 'k-1' });
    const theirs = await post({ type: 'mail', payload: null, id: 'k-1' }, zeta);
    expect(theirs.status).toBe(201);
    expect(theirs.body.id).not.toBe(ours.body.id);
  });

  test('fifty submissions at once with one key make one task', async () => {
    const answers = await Promise.all(
      Array.from({ length: 50 }, () => post({ type: 'mail', payload: 'x', idempotencyKey: 'burst' })),
    );
    const fresh = answers.filter(({ status }) => status === 201);
    expect(fresh).toHaveLength(1);
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 201]));
    expect(new Set(answers.map(({ body }) => `${body.id} ${body.seq}`)).size).toBe(1);
    expect(await eventsOf(fresh[0]?.body.id)).toHaveLength(1);
  });

  test('a key beyond ASCII is the same in a header and in a body', async () => {
    const inBody = await post({ type: 'mail', payload: 1, idempotencyKey: 'größe' });
    const bytes = Buffer.from('größe').toString('latin1');
    const inHeader = await post({ type: 'mail', payload: 1 }, acme, { 'idempotency-key': bytes });
    expect(inHeader.body).toEqual({ ...inBody.body, replayed: true });
  });

  test('keys given in two places must be equal', async () => {
    const { status, body } = await post({ type: 'mail', payload: 1, idempotencyKey: 'a' }, acme, {
      'idempotency-key': 'b',
    });
    expect(status).toBe(400);
    expect(body.error).toMatchObject({ code: 'request_invalid', field: 'Idempotency-Key' });
  });
});

describe('a batch', () => {
  const postBatch = (body: unknown, key = acme) => call(api.http, 'POST', '/v1/tasks/batch', { key, body });

  test('gives every task its own result', async () => {
    const { status, body } = await postBatch({
      tasks: [
        { type: 'mail', payload: 1, id: 'b-1' },
        { type: 'no.good', payload: 1 },
        { type: 'mail', payload: 1, id: 'b-1' },
        { type: 'mail', payload: 2, id: 'b-1' },
        'no task',
        { type: 'mail', payload: 1, tenant: 'zeta' },
      ],
    });
    expect(status).toBe(200);
    const { results } = body;
    expect(results.map((result: { index: number }) => result.index)).toEqual([0, 1, 2, 3, 4, 5]);
    expect(results[1].error).toMatchObject({ code: 'name_invalid', field: 'type' });
    expect([results[0], results[2], results[3]].filter(({ ok }) => ok)).not.toHaveLength(0);
    expect(results[0].ok && results[2].ok ? results[0].seq : undefined).toBe(results[2].seq);
    expect(results[3].error.code).toBe('idempotency_conflict');
    expect(results[4].error).toMatchObject({ code: 'request_invalid' });
    expect(results[5].error.code).toBe('tenant_forbidden');
  });

  test('stores a thousand tasks', async () => {
    const tasks = Array.from({ length: 1_000 }, (_, n) => ({ type: 'bulk', payload: { n } }));
    const { body } = await postBatch(tasks);
    expect(body.results.filter(({ ok }: { ok: boolean }) => ok)).toHaveLength(1_000);
    expect(new Set(body.results.map(({ seq }: { seq: number }) => seq)).size).toBe(1_000);
  });

  test('is described with the limit that is set', async () => {
    const own = await startApi(import.meta.url, { config: { maxBatchTasks: 7 } });
    const { body } = await call(own.http, 'GET', '/docs/json');
    expect(body.paths['/v1/tasks/batch'].post.description).toContain('up to 7 tasks');
    await own.stop();
  });

  test.each([
    [
      'one task too many',
      Array.from({ length: 1_001 }, () => ({ type: 't', payload: 1 })),
      'batch_too_large',
    ],
    ['no task', [], 'request_invalid'],
    ['no list', { jobs: [] }, 'request_invalid'],
    ['a member beside the list', { tasks: [{}], atomic: true }, 'request_invalid'],
  ])('with %s is refused as a whole', async (_, body, code) => {
    const before = await api.log.bounds();
    const answer = await postBatch(body);
    expect(answer.status).toBe(400);
    expect(answer.body.error.code).toBe(code);
    expect(await api.log.bounds()).toEqual(before);
  });
});

describe('a type', () => {
  test('gives its policy and priority to its tasks, recorded where they differ from the defaults', async () => {
    const put = await call(api.http, 'PUT', '/v1/types/slow', {
      key: operator,
      body: { policy: { maxRetries: 9, jitter: 'full' }, priority: 4 },
    });
    expect(put.body).toMatchObject({ type: 'slow', effectivePolicy: { maxRetries: 9, timeoutMs: 900_000 } });
    const { body } = await post({ type: 'slow', payload: 1, policy: { timeoutMs: 5 } });
    expect((await eventsOf(body.id))[0]).toMatchObject({
      priority: 4,
      data: { policy: { maxRetries: 9, timeoutMs: 5 } },
    });
  });
});

test('a task of the past keeps its trace', async () => {
  const traceparent = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`;
  const { body } = await post({ type: 'mail', payload: 1, runAt: '2026-01-31T09:30:00+01:00' }, acme, {
    traceparent,
  });
  expect((await eventsOf(body.id))[0]).toMatchObject({
    trace: traceparent,
    data: { runAt: Date.UTC(2026, 0, 31, 8, 30) },
  });
});

describe('cancel', () => {
  test('a waiting task is CANCELLED, once', async () => {
    const { body: task } = await post({ type: 'mail', payload: 1 });
    const url = `/v1/tasks/${task.id}/cancel`;
    const first = await call(api.http, 'POST', url, { key: acme, body: { reason: 'changed my mind' } });
    expect(first.status).toBe(200);
    expect(first.body).toMatchObject({ id: task.id, event: 'CANCELLED', status: 'CANCELLED' });
    const again = await call(api.http, 'POST', url, { key: acme });
    expect(again.status).toBe(409);
    expect(again.body.error.code).toBe('task_terminal');
  });

  test("another tenant's task is not found, and stays", async () => {
    const { body: task } = await post({ type: 'mail', payload: 1 });
    const { status, body } = await call(api.http, 'POST', `/v1/tasks/${task.id}/cancel`, { key: zeta });
    expect(status).toBe(404);
    expect(body.error.code).toBe('task_not_found');
    expect(await eventsOf(task.id)).toHaveLength(1);
  });
});
