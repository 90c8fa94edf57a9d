import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Command } from '../../src/domain/commands.ts';
import type { Recorded } from '../../src/domain/events.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { createPool } from '../../src/platform/postgres.ts';
import { createQuery } from '../../src/query/postgres-query.ts';
import type { TaskFilter } from '../../src/query/query.ts';
import { eventually } from '../support/eventually.ts';
import {
  claim,
  complete,
  deadLetter,
  fail,
  given,
  ingest,
  NOW,
  queue,
  reject,
  start,
} from '../support/life.ts';
import { openLogGround, openModelDatabase, recordingLogger } from '../support/read-models.ts';
import { testNamespace } from '../support/servers.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

const ground = await openLogGround(testNamespace(import.meta.url));
const database = await openModelDatabase(import.meta.url);
const projector = ground.projector(database.pool);
const target = new URL(database.url);
const proxy = await startTcpProxy({ host: target.hostname, port: Number(target.port) });
target.hostname = '127.0.0.1';
target.port = String(proxy.port);
const pool = createPool({ ...loadConfig({}), databaseUrl: target.href }, 'query');
const logger = recordingLogger();
const query = createQuery({ pool, nc: ground.nc, names: ground.names, logger });

beforeAll(async () => {
  await projector.start();
  await query.start();
});
afterAll(async () => {
  await query.stop();
  await ground.stop();
  await pool.end();
  await proxy.close();
  await database.close();
});

const once = { maxRetries: 0 };
/** Lives of their own; the answer is their ids. Returns when the read models show them. */
async function live(tenant: string, ...lives: Command[][]): Promise<string[]> {
  const ids: string[] = [];
  const events: Recorded[] = [];
  for (const [first, ...commands] of lives) {
    if (first === undefined || (first.kind !== 'ingest' && first.kind !== 'reject'))
      throw new TypeError('a life begins with a submission');
    const taskId = randomUUID();
    ids.push(taskId);
    events.push(...given({ ...first, taskId, tenant }, ...commands).events);
  }
  const lastSeq = await ground.append(events);
  await query.waitFor(lastSeq, 60_000);
  return ids;
}
const idsOf = async (filter: TaskFilter) =>
  (await query.tasks(filter, { limit: 100 })).value.items.map(({ id }) => id);

describe('a task', () => {
  test('is shown with everything that its events have said', async () => {
    const [id = ''] = await live('one', [
      ingest({
        idempotencyKey: 'order-1',
        priority: 3,
        deadlineAt: NOW + 90,
        schedule: { name: 'nightly', slotAt: NOW - 5 },
      }),
      queue(),
      claim(),
      start(),
      complete(),
    ]);
    const { value, position } = await query.task('one', id);
    expect(value).toEqual({
      id,
      tenant: 'one',
      type: 'transcode',
      status: 'COMPLETED',
      priority: 3,
      round: 1,
      attempt: 1,
      cancelRequested: false,
      worker: 'w1',
      payload: { clip: 1 },
      result: { frames: 250 },
      error: null,
      deadLetterReason: null,
      rejections: null,
      idempotencyKey: 'order-1',
      schedule: 'nightly',
      slotAt: new Date(NOW - 5).toISOString(),
      submittedAt: new Date(NOW).toISOString(),
      runAt: null,
      dueAt: null,
      deadlineAt: new Date(NOW + 90).toISOString(),
      claimedAt: expect.stringMatching(/Z$/),
      startedAt: expect.stringMatching(/Z$/),
      finishedAt: expect.stringMatching(/Z$/),
      updatedAt: expect.stringMatching(/Z$/),
      seq: position,
    });
  });

  test('of another tenant does not exist, except for an operator', async () => {
    const [id = ''] = await live('mine', [ingest()]);
    expect((await query.task('yours', id)).value).toBeUndefined();
    expect((await query.taskEvents('yours', id, { limit: 10 })).value.items).toEqual([]);
    expect((await query.task(undefined, id)).value?.tenant).toBe('mine');
    expect((await query.taskEvents(undefined, id, { limit: 10 })).value.items).toHaveLength(1);
  });

  test('that nobody submitted, or whose id is no id, is unknown', async () => {
    expect((await query.task('one', randomUUID())).value).toBeUndefined();
    expect((await query.task('one', "' or true --")).value).toBeUndefined();
    expect((await query.taskEvents('one', 'x', { limit: 10 })).value.items).toEqual([]);
  });

  test('has its transitions oldest first, in pages', async () => {
    const [id = ''] = await live('pages', [ingest(), queue(), claim(), start(), complete()]);
    const first = await query.taskEvents('pages', id, { limit: 3 });
    expect(first.value.items.map(({ kind }) => kind)).toEqual(['INGESTED', 'QUEUED', 'CLAIMED']);
    expect(first.value.items[2]).toMatchObject({
      from: 'QUEUED',
      attempt: 1,
      at: new Date(NOW).toISOString(),
      actor: { kind: 'worker', id: 'w1' },
      data: {},
    });
    const cursor = first.value.nextCursor ?? '';
    const second = await query.taskEvents('pages', id, { limit: 3, cursor });
    expect(second.value.items.map(({ kind }) => kind)).toEqual(['PROCESSING', 'COMPLETED']);
    expect(second.value.nextCursor).toBeNull();
  });
});

describe('a list of tasks', () => {
  test('is newest first, and pages neither repeat nor skip while tasks come in', async () => {
    const ids = await live('flow', ...Array.from({ length: 7 }, () => [ingest()]));
    const seen: string[] = [];
    let cursor: string | undefined;
    do {
      const { value } = await query.tasks({ tenant: 'flow' }, { limit: 3, cursor });
      seen.push(...value.items.map(({ id }) => id));
      cursor = value.nextCursor ?? undefined;
      await live('flow', [ingest()]);
    } while (cursor !== undefined);
    expect(seen).toEqual([...ids].reverse());
  });

  test('is narrowed by tenant, type, status, worker and time of submission', async () => {
    const [waiting, done, dead, other, later] = await live(
      'narrow',
      [ingest()],
      [ingest(), queue(), claim('w-9'), start('w-9'), complete('w-9')],
      [ingest({ policy: once }), queue(), claim(), start(), fail(), deadLetter()],
      [ingest({ type: 'thumbnail' })],
      [ingest({ at: NOW + 60_000 })],
    );
    const tenant = 'narrow';
    expect(await idsOf({ tenant, status: ['COMPLETED'] })).toEqual([done]);
    expect(await idsOf({ tenant, status: ['DEAD_LETTER', 'COMPLETED'] })).toEqual([dead, done]);
    expect(await idsOf({ tenant, status: ['INGESTED'], type: 'thumbnail' })).toEqual([other]);
    expect(await idsOf({ tenant, worker: 'w-9' })).toEqual([done]);
    expect(await idsOf({ tenant, submittedFrom: NOW + 1 })).toEqual([later]);
    expect(await idsOf({ tenant, submittedTo: NOW })).toEqual([]);
    expect(await idsOf({ tenant, submittedFrom: NOW, submittedTo: NOW + 1, status: ['INGESTED'] })).toEqual([
      other,
      waiting,
    ]);
    expect(await idsOf({ tenant: 'nobody' })).toEqual([]);
    expect(await idsOf({ status: ['DEAD_LETTER'] })).toContain(dead);
  });

  test.each(['', 'x', 'ZTE', Buffer.from("t1' or").toString('base64url'), 'dDA', 'dDE='])(
    'refuses the cursor %j',
    async (cursor) => {
      await expect(query.tasks({}, { limit: 1, cursor })).rejects.toMatchObject({ code: 'cursor_invalid' });
    },
  );
});

test('queues show how many tasks are in which status', async () => {
  await live('counted', [ingest()], [ingest()], [ingest(), queue()], [ingest({ priority: 4 })], [reject()]);
  expect((await query.queues({ tenant: 'counted' })).value).toEqual([
    { tenant: 'counted', type: 'transcode', priority: 2, counts: { INGESTED: 2, QUEUED: 1, REJECTED: 1 } },
    { tenant: 'counted', type: 'transcode', priority: 4, counts: { INGESTED: 1 } },
  ]);
  expect((await query.queues({ tenant: 'counted', type: 'none' })).value).toEqual([]);
});

describe('a position', () => {
  test('is waited for, and then the answer reflects it', async () => {
    const lastSeq = await ground.append(given({ ...ingest(), taskId: randomUUID() }).events);
    await query.waitFor(lastSeq, 60_000);
    expect((await query.queues({})).position).toBeGreaterThanOrEqual(lastSeq);
    expect(await query.position()).toBeGreaterThanOrEqual(lastSeq);
  });

  test('that does not come is given up, with where the read models are', async () => {
    const position = await query.position();
    await expect(query.waitFor(position + 1, 50)).rejects.toMatchObject({
      code: 'position_not_reached',
      details: { position, wanted: position + 1 },
    });
  });
});

test('while Postgres is dead, questions reach nobody between two looks whether it is back', async () => {
  await live('asking', [ingest()]);
  const asking = createQuery({
    pool,
    nc: ground.nc,
    names: ground.names,
    logger: recordingLogger(),
    // Longer than the test may take.
    lookEveryMs: 600_000,
  });
  proxy.cut();
  for (let tries = 0; tries < 3; tries++)
    await expect(asking.position()).rejects.toMatchObject({ code: 'read_model_unavailable' });
  await eventually(() => pool.totalCount === 0);
  proxy.blackhole();
  await expect(asking.queues({})).rejects.toMatchObject({ code: 'read_model_unavailable', status: 503 });
  await expect(asking.position()).rejects.toMatchObject({ code: 'read_model_unavailable' });
  expect(pool.totalCount).toBe(0);
  proxy.pass();
});

test('while Postgres is dead, questions are refused and that is told once; afterwards they are answered', async () => {
  const [id = ''] = await live('patient', [ingest()]);
  proxy.cut();
  for (let tries = 0; tries < 5; tries++)
    await expect(query.task('patient', id)).rejects.toMatchObject({ code: 'read_model_unavailable' });
  expect(logger.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  const started = performance.now();
  // Every second one question finds out whether Postgres is back: these find the same outage.
  await eventually(async () => {
    await query.position().catch(() => undefined);
    return performance.now() - started > 2_500;
  });
  expect(logger.lines.filter(({ level }) => level === 'error')).toHaveLength(1);
  proxy.pass();
  await eventually(async () => (await query.task('patient', id)).value?.id === id);
  expect(logger.lines.filter(({ message }) => message === 'Postgres answers again')).toHaveLength(1);
});
