import { randomUUID } from 'node:crypto';
import { jetstreamManager } from '@nats-io/jetstream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createProjector } from '../../projections/engine/projector.ts';
import { projections } from '../../projections/projections.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { commandLetter } from '../../src/operations/letter-command.ts';
import { createQuery } from '../../src/query/postgres-query.ts';
import { call, startApi } from '../support/api.ts';
import { die } from '../support/deaths.ts';
import { replay } from '../support/life.ts';
import { openModelDatabase } from '../support/read-models.ts';

const database = await openModelDatabase(import.meta.url);
const api = await startApi(import.meta.url, {
  queryOn: (nc, names) => createQuery({ pool: database.pool, nc, names, logger: silentLogger }),
});
const { nc, names, config, log, clock } = api;
const query = api.query as ReturnType<typeof createQuery>;
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
  await query.start();
});
afterAll(async () => {
  await projector.stop();
  await query.stop();
  await api.stop();
  await database.close();
});

const { acme, zeta, operator } = api.keys;
const get = async (url: string, key = acme) => (await call(api.http, 'GET', url, { key })).body;
const discard = (id: string, reason = 'useless', key = acme) =>
  call(api.http, 'POST', `/v1/dead-letters/${id}/discard`, { key, body: { reason } });
const idsOf = ({ deadLetters }: { deadLetters: { id: string }[] }) => deadLetters.map(({ id }) => id);

describe('dead letters are found', () => {
  test('by type, group, reason, release, time and state, the last death first, page by page', async () => {
    const type = 'found';
    const refused = { name: 'Error', message: 'connect ECONNREFUSED 10.0.0.1:5432' };
    const first = await die(log, { type, error: refused, workerVersion: '1.0' });
    const second = await die(log, {
      type,
      error: { name: 'BadClip', message: 'no' },
      final: 'not_retryable',
    });
    const third = await die(log, {
      type,
      error: { ...refused, message: 'connect ECONNREFUSED 10.9.9.9:1' },
      at: Date.now() + 60_000,
    });
    const { deadLetters } = await get(`/v1/dead-letters?type=${type}&wait=${third.seq}`);
    expect(idsOf({ deadLetters })).toEqual([third.id, second.id, first.id]);
    expect(deadLetters[2]).toMatchObject({
      tenant: 'acme',
      type,
      state: 'open',
      reason: 'retries',
      error: refused,
      worker: 'w1',
      workerVersion: '1.0',
      attempt: 1,
      round: 1,
      seq: first.seq,
    });
    const { fingerprint } = deadLetters[0];
    const found = async (filter: string) => idsOf(await get(`/v1/dead-letters?type=${type}&${filter}`));
    expect(await found(`fingerprint=${fingerprint}`)).toEqual([third.id, first.id]);
    expect(await found('reason=not_retryable')).toEqual([second.id]);
    expect(await found('workerVersion=1.0')).toEqual([first.id]);
    expect(await found(`deadFrom=${Date.now() + 30_000}`)).toEqual([third.id]);
    expect(await found('state=replayed')).toEqual([]);
    const page = await get(`/v1/dead-letters?type=${type}&limit=2`);
    expect(idsOf(page)).toEqual([third.id, second.id]);
    expect(await found(`limit=2&cursor=${page.nextCursor}`)).toEqual([first.id]);
  });

  test('in groups, over all tenants for an operator, over its own for a tenant', async () => {
    const type = 'grouped';
    const timeout = (ms: number) => ({ error: { name: 'Timeout', message: `no answer in ${ms} ms` } });
    await die(log, { type, ...timeout(10) });
    await die(log, { type, ...timeout(20) });
    await die(log, { type, error: { name: 'Error', message: 'codec missing' } });
    const last = await die(log, { type, tenant: 'zeta', ...timeout(999) });
    const { groups } = await get(`/v1/dead-letters/groups?type=${type}&wait=${last.seq}`, operator);
    expect(groups).toMatchObject([
      {
        type,
        errorName: 'Timeout',
        shape: 'no answer in <n>',
        open: 3,
        deaths: 3,
        tenants: [
          { tenant: 'acme', open: 2 },
          { tenant: 'zeta', open: 1 },
        ],
        sample: { id: last.id, tenant: 'zeta', message: 'no answer in 999 ms' },
      },
      { errorName: 'Error', open: 1, tenants: [{ tenant: 'acme', open: 1 }] },
    ]);
    const own = await get(`/v1/dead-letters/groups?type=${type}`, zeta);
    expect(own.groups).toMatchObject([{ open: 1, tenants: [{ tenant: 'zeta', open: 1 }] }]);
    const page = await get(`/v1/dead-letters/groups?type=${type}&limit=1`, operator);
    const next = await get(`/v1/dead-letters/groups?type=${type}&cursor=${page.nextCursor}`, operator);
    expect([page, next].map((each) => each.groups[0].errorName)).toEqual(['Timeout', 'Error']);
    expect(next.nextCursor).toBeNull();
  });

  test('by nobody else', async () => {
    const { id, seq } = await die(log, { tenant: 'zeta' });
    expect((await call(api.http, 'GET', `/v1/dead-letters/${id}?wait=${seq}`, { key: acme })).status).toBe(
      404,
    );
    expect((await get(`/v1/dead-letters/${id}`, zeta)).deadLetter).toMatchObject({ id });
    const refused = await discard(id);
    expect([refused.status, refused.body.error.code]).toEqual([404, 'dead_letter_not_found']);
  });
});

describe('a dead letter that is discarded', () => {
  test('says why and by whom, leaves the open ones, and is never replayed', async () => {
    const type = 'discarded';
    const { id } = await die(log, { type });
    const { status, body } = await discard(id, 'the clip is gone');
    expect([status, body.status]).toEqual([200, 'DEAD_LETTER']);
    const { deadLetter } = await get(`/v1/dead-letters/${id}?wait=${body.seq}`);
    expect(deadLetter).toMatchObject({ state: 'discarded', note: 'the clip is gone' });
    expect(deadLetter.settledBy).toMatch(/^key \w+$/);
    expect((await get(`/v1/dead-letters/groups?type=${type}`)).groups).toEqual([]);
    expect((await get(`/v1/dead-letters/groups?type=${type}&all=true`)).groups).toMatchObject([
      { open: 0, discarded: 1 },
    ]);
    const { task } = await get(`/v1/tasks/${id}`);
    expect(task.status).toBe('DEAD_LETTER');
    expect(task.finishedAt).toBe(deadLetter.deadAt);
    expect((await discard(id)).body.error.code).toBe('task_discarded');
    const replayed = await commandLetter({ log, query }, { tenant: 'acme', taskId: id }, () => replay());
    expect(replayed).toMatchObject({ ok: false, error: { code: 'task_discarded' } });
  });

  test('must be dead, and the reason must be given', async () => {
    const { body } = await call(api.http, 'POST', '/v1/tasks', {
      key: acme,
      body: { type: 'mail', payload: 1 },
    });
    expect((await discard(body.id)).body.error.code).toBe('transition_illegal');
    expect((await discard(body.id, '')).body.error.code).toBe('request_invalid');
    expect((await discard(randomUUID())).body.error.code).toBe('dead_letter_not_found');
  });
});

describe('a dead letter that the log has forgotten', () => {
  /** What age does to a task that has ended; `keep`: of its last events so many are left. */
  const forget = async (tenant: string, id: string, keep = 0) => {
    const jsm = await jetstreamManager(nc, { checkAPI: false });
    const events = await log.readTask(tenant, id);
    for (const { seq } of events.slice(0, events.length - keep))
      await jsm.streams.deleteMessage(names.streams.tasks, seq);
  };
  const command = () => ({ ...replay(), eventId: randomUUID(), at: Date.now() });
  const again = (taskId: string) => commandLetter({ log, query }, { tenant: 'acme', taskId }, command);

  test.each([
    ['wholly', 0],
    ['but for its end', 2],
  ])('%s is replayed with its payload and its policy, once', async (_, keep) => {
    const { id, seq } = await die(log, { payload: { clip: 'old' } });
    await query.waitFor(seq, 60_000);
    await forget('acme', id, keep);
    expect(await log.readState('acme', id)).toBeUndefined();
    const [one, two] = await Promise.all([again(id), again(id)]);
    expect([one?.ok, two?.ok].filter(Boolean)).toHaveLength(1);
    const state = await log.readState('acme', id);
    expect(state).toMatchObject({
      status: 'REPLAYED',
      round: 2,
      attempt: 1,
      payload: { clip: 'old' },
      facts: { policy: { maxRetries: 0 }, attemptsBefore: 1 },
    });
    expect(await again(id)).toMatchObject({ ok: false, error: { code: 'transition_illegal' } });
  });

  test('is discarded, and then not replayed even when that is forgotten too', async () => {
    const { id, seq } = await die(log);
    await query.waitFor(seq, 60_000);
    await forget('acme', id);
    const { status, body } = await discard(id);
    expect(status).toBe(200);
    await query.waitFor(body.seq, 60_000);
    await forget('acme', id);
    expect(await again(id)).toMatchObject({ ok: false, error: { code: 'task_discarded' } });
  });
});
