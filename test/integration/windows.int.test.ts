import { randomUUID } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import type { TaskState } from '../../src/domain/task.ts';
import { taskIdOfWindow } from '../../src/intake/identity.ts';
import { receive } from '../../src/intake/receipt.ts';
import { createSubmitter } from '../../src/intake/submitter.ts';
import { execute } from '../../src/log/handle.ts';
import { call, startApi } from '../support/api.ts';
import { testNatsUrl } from '../support/servers.ts';

/** Two processes that take submissions; the test hands tasks out as a dispatcher does. */
const one = await startApi(import.meta.url);
const other = await startApi(import.meta.url);
const { log, names } = one;
afterAll(async () => {
  await other.stop();
  await one.stop();
});

const beganAt = Date.now();
/** About an hour: windows are cut from the time line, and so that the one of now has just begun. */
const HOUR_MS = Math.floor(beganAt / Math.floor(beganAt / 3_600_000));
const submit = (api: typeof one, body: object) =>
  call(api.http, 'POST', '/v1/tasks', {
    key: one.keys.acme,
    body: { type: 'index', payload: null, ...body },
  });
const stateOf = async (id: string) => (await log.readState('acme', id)) as TaskState;
const handOut = (taskId: string) =>
  execute(log, { tenant: 'acme', taskId }, () => ({
    kind: 'queue',
    eventId: randomUUID(),
    at: Date.now(),
    actor: { kind: 'dispatcher', id: 'test' },
    inlinePayload: true,
  }));

describe('throttle', () => {
  test('makes one task of all submissions of a key in a window, by whatever way and process they come', async () => {
    const throttle = { key: `report ${randomUUID()}`, windowMs: HOUR_MS };
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) => submit(n % 2 === 0 ? one : other, { payload: n, throttle })),
    );
    expect(answers.map(({ status }) => status).sort((a, b) => b - a)).toEqual([
      201,
      ...Array.from({ length: 39 }, () => 200),
    ]);
    const first = answers.find(({ status }) => status === 201)?.body;
    for (const { status, body } of answers)
      if (status === 200) expect(body).toEqual({ ...first, replayed: true, deduplicated: 'throttle' });
    const submitter = await createSubmitter({ nats: testNatsUrl(), tenant: 'acme', prefix: names.prefix });
    expect(await submitter.submit({ type: 'index', payload: 'x', throttle })).toMatchObject({ id: first.id });
    await submitter.close();
    const tasks = [{ type: 'index', payload: 'y', throttle }];
    const batch = await call(other.http, 'POST', '/v1/tasks/batch', { key: one.keys.acme, body: { tasks } });
    expect(batch.body.results[0]).toMatchObject({ ok: true, id: first.id, deduplicated: 'throttle' });
    expect(await log.readTask('acme', first.id)).toHaveLength(1);
  });

  test('another key, type, window or tenant is another task, and so is the next window', async () => {
    const key = randomUUID();
    const idOf = async (type: string, windowMs: number, of = key) =>
      (await submit(one, { type, throttle: { key: of, windowMs } })).body.id;
    const ids = [
      await idOf('index', HOUR_MS),
      await idOf('mail', HOUR_MS),
      await idOf('index', 2 * HOUR_MS),
      await idOf('index', HOUR_MS, randomUUID()),
      taskIdOfWindow('acme', `index ${HOUR_MS} ${Math.floor(Date.now() / HOUR_MS) + 1} ${key}`),
      taskIdOfWindow('zeta', `index ${HOUR_MS} ${Math.floor(Date.now() / HOUR_MS)} ${key}`),
    ];
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('debounce', () => {
  const debounced = (windowMs = 600_000, maxWaitMs = 900_000) => ({
    debounce: { key: randomUUID(), windowMs, maxWaitMs },
  });

  test('makes one task of submissions to two processes, and the last one gives the payload and the time', async () => {
    const key = debounced();
    const answers = await Promise.all(
      Array.from({ length: 40 }, (_, n) => submit(n % 2 === 0 ? one : other, { payload: n, ...key })),
    );
    const ids = new Set(answers.map(({ body }) => body.id));
    expect(ids.size).toBe(1);
    expect(answers.filter(({ status }) => status === 201).length).toBeLessThanOrEqual(1);
    const [id = ''] = ids;
    const before = await stateOf(id);
    const last = await submit(other, { payload: 'last', priority: 1, ...key });
    expect(last).toMatchObject({
      status: 200,
      body: { id, replayed: false, deduplicated: 'debounce' },
    });
    const after = await stateOf(id);
    expect(after).toMatchObject({ status: 'INGESTED', payload: 'last', priority: 1, seq: last.body.seq });
    expect(after.dueAt).toBeGreaterThanOrEqual(before.dueAt ?? 0);
    expect(after.dueAt).toBeLessThanOrEqual(after.facts.debounce?.until ?? 0);
  });

  test('begins another task once the one before has been handed out', async () => {
    const key = debounced();
    const first = await submit(one, { payload: 1, ...key });
    await handOut(first.body.id);
    const second = await submit(other, { payload: 2, ...key });
    const third = await submit(one, { payload: 3, ...key });
    expect([first.status, second.status, third.status]).toEqual([201, 201, 200]);
    expect(second.body.id).not.toBe(first.body.id);
    expect(third.body.id).toBe(second.body.id);
    expect(await stateOf(first.body.id)).toMatchObject({ status: 'QUEUED', payload: 1 });
    expect(await stateOf(second.body.id)).toMatchObject({ payload: 3 });
  });

  test('never has two tasks waiting, however submissions and handing out race', async () => {
    const key = debounced();
    const ids = new Set<string>([(await submit(one, { payload: 0, ...key })).body.id]);
    for (let round = 0; round < 25; round += 1) {
      const racing = [...ids].map((id) => handOut(id));
      const answers = await Promise.all([
        ...[one, other, one, other].map((api, n) => submit(api, { payload: `${round}.${n}`, ...key })),
        ...racing,
      ]);
      for (const answer of answers) if ('body' in answer) ids.add(answer.body.id);
      const states = await Promise.all([...ids].map((id) => stateOf(id)));
      expect(states.filter(({ status }) => status === 'INGESTED').length).toBeLessThanOrEqual(1);
    }
    expect(ids.size).toBeGreaterThan(10);
  });

  test('a message that comes a second time makes nothing new, and does not undo a later one', async () => {
    const key = debounced();
    const startedAt = Date.now() - 1_000;
    const take = (payload: number, seq: number) =>
      receive(
        {
          data: new TextEncoder().encode(JSON.stringify({ payload, ...key })),
          headers: undefined,
          seq,
          timestampNanos: BigInt(startedAt + seq) * 1_000_000n,
        } as never,
        { tenant: 'acme', type: 'index' },
        { intake: other.intake, tenants: { get: () => ({}) } },
      );
    const older = await take(1, 1);
    const newer = await take(2, 2);
    const again = await take(1, 1);
    expect(new Set([older, newer, again].map(({ taskId }) => taskId)).size).toBe(1);
    expect(await stateOf(older.taskId)).toMatchObject({ payload: 2 });
    await handOut(older.taskId);
    expect((await take(2, 2)).taskId).toBe(older.taskId);
    expect((await take(3, 3)).taskId).not.toBe(older.taskId);
  });

  test('a waiting task that was cancelled is not pushed: the next submission begins anew', async () => {
    const key = debounced();
    const { id } = (await submit(one, { payload: 1, ...key })).body;
    await call(one.http, 'POST', `/v1/tasks/${id}/cancel?tenant=acme`, { key: one.keys.operator, body: {} });
    const next = await submit(one, { payload: 2, ...key });
    expect((await stateOf(id)).status).toBe('CANCELLED');
    expect(next).toMatchObject({ status: 201 });
    expect(next.body.id).not.toBe(id);
  });
});
