import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createProjector } from '../../projections/engine/projector.ts';
import { projections } from '../../projections/projections.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { replayLetters } from '../../src/operations/replay-letters.ts';
import { createOperationRunner, type OperationRunner } from '../../src/operations/runner.ts';
import { createQuery } from '../../src/query/postgres-query.ts';
import { call, startApi } from '../support/api.ts';
import { type Death, die, live } from '../support/deaths.ts';
import { eventually } from '../support/eventually.ts';
import { gate } from '../support/gate.ts';
import { claim, deadLetter, fail, ingest, queue, requestCancel, start } from '../support/life.ts';
import { openModelDatabase } from '../support/read-models.ts';
import { connectTestNats } from '../support/servers.ts';

const database = await openModelDatabase(import.meta.url);
const api = await startApi(import.meta.url, {
  queryOn: (nc, names) => createQuery({ pool: database.pool, nc, names, logger: silentLogger }),
});
const { nc, names, config, log, operations, clock } = api;
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
const runners: OperationRunner[] = [];
/** `after` is awaited when a task has been acted on. */
async function startRunner(on = nc, after = async (): Promise<void> => {}): Promise<void> {
  const kind = replayLetters({ log, clock, letters: query });
  const watched = {
    ...kind,
    act: async (...[operation, target]: Parameters<typeof kind.act>) => {
      const outcome = await kind.act(operation, target);
      await after();
      return outcome;
    },
  };
  const runner = createOperationRunner({
    nc: on,
    names,
    operations,
    kinds: [watched],
    leaseMs: 1_000,
    clock,
    logger: silentLogger,
  });
  runners.push(runner);
  await runner.start();
}

beforeAll(async () => {
  await projector.start();
  await query.start();
  await startRunner();
});
afterAll(async () => {
  for (const runner of runners) await runner.stop();
  await projector.stop();
  await query.stop();
  await api.stop();
  await database.close();
});

const { acme, zeta, operator } = api.keys;
const post = (url: string, body?: object, key = acme) => call(api.http, 'POST', url, { key, body });
const get = async (url: string, key = acme) => (await call(api.http, 'GET', url, { key })).body;
const begin = async (body: object, key = acme) => {
  const answer = await post('/v1/replays', body, key);
  expect([answer.status, answer.body.error]).toEqual([202, undefined]);
  return answer.body;
};
const ended = (id: string, key = acme) =>
  eventually(
    async () => {
      const seen = await get(`/v1/replays/${id}`, key);
      return seen.state === 'done' ? seen : false;
    },
    { timeoutMs: 60_000 },
  );
async function died(count: number, death: Death): Promise<string[]> {
  const deaths = [];
  for (let n = 0; n < count; n++) deaths.push(await die(log, death));
  await query.waitFor(Math.max(...deaths.map(({ seq }) => seq)), 60_000);
  return deaths.map(({ id }) => id);
}
const statusOf = async (id: string, tenant = 'acme') => (await log.readState(tenant, id))?.status;
const roundsOf = async (ids: readonly string[], tenant = 'acme') =>
  Promise.all(ids.map(async (id) => (await log.readState(tenant, id))?.round));

describe('a replay', () => {
  test('of named tasks starts the next round of each, with its note and edits, and of cancelled ones too', async () => {
    const [dead = ''] = await died(1, { type: 'named' });
    const cancelled = randomUUID();
    await live(log, { tenant: 'acme', taskId: cancelled }, [
      ingest({ taskId: cancelled, type: 'named' }),
      requestCancel(),
    ]);
    const { id } = await begin({
      ids: [dead, cancelled, randomUUID()],
      note: 'fixed in 1.2',
      payload: null,
      policy: { timeoutMs: 5_000 },
    });
    const done = await ended(id);
    expect(done).toMatchObject({
      expected: 3,
      edited: ['payload', 'policy'],
      progress: { matched: 3, replayed: 2, skipped: 1, failed: 0 },
      actor: { kind: 'key' },
    });
    expect(await log.readState('acme', dead)).toMatchObject({
      status: 'REPLAYED',
      round: 2,
      payload: null,
      facts: { policy: { maxRetries: 0, timeoutMs: 5_000 } },
    });
    expect(await statusOf(cancelled)).toBe('REPLAYED');
    const [last] = (await log.readTask('acme', dead)).slice(-1);
    expect(last?.event).toMatchObject({ actor: done.actor, data: { note: 'fixed in 1.2' } });
  });

  test('of a group leaves all others alone, and tried dry it only counts', async () => {
    const type = 'group';
    const error = (message: string) => ({ type, error: { name: 'Error', message } });
    const refused = await died(3, error('connect ECONNREFUSED 10.0.0.1:1'));
    const others = await died(2, error('codec missing'));
    const theirs = await died(1, { ...error('connect ECONNREFUSED 10.0.0.9:2'), tenant: 'zeta' });
    const { groups } = await get(`/v1/dead-letters/groups?type=${type}`, operator);
    const { fingerprint } = groups.find(({ open }: { open: number }) => open === 4);
    const wish = { filter: { type, fingerprint } };
    const dry = (await post('/v1/replays', { ...wish, dryRun: true })).body;
    expect([dry.count, dry.sample.map(({ id }: { id: string }) => id).sort()]).toEqual([
      3,
      refused.toSorted(),
    ]);
    expect(await roundsOf(refused)).toEqual([1, 1, 1]);

    expect((await ended((await begin(wish)).id)).progress).toMatchObject({ matched: 3, replayed: 3 });
    expect(await roundsOf([...refused, ...others])).toEqual([2, 2, 2, 1, 1]);
    expect(await roundsOf(theirs, 'zeta')).toEqual([1]);

    const everybodys = await begin(wish, operator);
    expect((await ended(everybodys.id, operator)).progress).toMatchObject({ replayed: 1 });
    expect(await roundsOf(theirs, 'zeta')).toEqual([2]);
    await eventually(
      async () => (await post('/v1/replays', { ...wish, dryRun: true }, operator)).body.count === 0,
    );
  });

  test('twice is harmless: what is under way again is skipped, what was discarded too', async () => {
    const type = 'twice';
    const [first = '', second = ''] = await died(2, { type });
    await post(`/v1/dead-letters/${second}/discard`, { reason: 'useless' });
    const [one, two] = await Promise.all([begin({ ids: [first, second] }), begin({ ids: [first, second] })]);
    const progress = [await ended(one.id), await ended(two.id)].map((each) => each.progress);
    expect(progress.map(({ replayed }) => replayed).toSorted((a, b) => a - b)).toEqual([0, 1]);
    expect(await roundsOf([first, second])).toEqual([2, 1]);
  });

  test('keeps to its rate, is paused, resumed and aborted, by its own tenant', async () => {
    const type = 'slow';
    const ids = await died(12, { type });
    await runners.pop()?.stop();
    // It is paused in the middle of its third page, however long that takes.
    const third = gate();
    const goOn = gate();
    let acted = 0;
    await startRunner(nc, async () => {
      acted += 1;
      if (acted !== 3) return;
      third.open();
      await goOn.opened;
    });
    const { id } = await begin({ filter: { type }, ratePerSecond: 4 });
    await third.opened;
    expect((await post(`/v1/replays/${id}/pause`, undefined, zeta)).status).toBe(404);
    const paused = (await post(`/v1/replays/${id}/pause`)).body;
    expect(paused).toMatchObject({ state: 'paused', changedBy: paused.actor });
    goOn.open();
    await eventually(async () => (await get(`/v1/replays/${id}`)).progress.replayed === 3);
    const startedAt = performance.now();
    await post(`/v1/replays/${id}/resume`);
    expect((await ended(id)).progress).toMatchObject({ matched: 12, replayed: 12 });
    // The first of the nine may go at once.
    expect(performance.now() - startedAt).toBeGreaterThan((8 / 4) * 1_000);
    expect(await roundsOf(ids)).toEqual(ids.map(() => 2));
    expect((await post(`/v1/replays/${id}/abort`)).body.error.code).toBe('operation_ended');

    await died(6, { type: 'aborted' });
    const other = await begin({ filter: { type: 'aborted' }, ratePerSecond: 1 });
    expect((await post(`/v1/replays/${other.id}/abort`)).body.state).toBe('aborted');
    expect((await get('/v1/replays')).replays.slice(0, 2).map((each: { id: string }) => each.id)).toEqual([
      other.id,
      id,
    ]);
    expect((await get('/v1/replays', zeta)).replays).toEqual([]);
  });

  test('that is cut off in a page goes on in another process: each task once, each counted once', async () => {
    const type = 'crash';
    const ids = await died(10, { type });
    await runners.pop()?.stop();
    const doomed = await connectTestNats();
    let acted = 0;
    // The page is done, but its end is never stored: as when the process dies right then.
    await startRunner(doomed, () => {
      acted += 1;
      return new Promise(() => {});
    });
    const { id } = await begin({ filter: { type } });
    await eventually(() => acted === ids.length);
    // One of them dies again before the page is done a second time.
    const [unlucky = ''] = ids;
    const known = await log.readState('acme', unlucky);
    await live(log, { tenant: 'acme', taskId: unlucky }, [
      queue(),
      claim(),
      start('w1', 2),
      fail('w1', 2),
      deadLetter(),
    ]);
    expect(known?.round).toBe(2);
    runners.pop();
    await doomed.close();
    await startRunner();
    const { progress } = await ended(id);
    expect(progress).toMatchObject({ replayed: expect.any(Number), failed: 0, skipped: 0 });
    expect(progress.replayed).toBeGreaterThanOrEqual(ids.length - 1);
    expect(await roundsOf(ids)).toEqual(ids.map(() => 2));
    expect(await statusOf(unlucky)).toBe('DEAD_LETTER');
  });
});

test('a wish that says too little, too much or nonsense is refused by its field', async () => {
  const refused = async (body: object) => {
    const { status, body: answer } = await post('/v1/replays', body);
    return [status, answer.error?.field];
  };
  expect(await refused({})).toEqual([400, 'filter']);
  expect(await refused({ ids: [randomUUID()], filter: {} })).toEqual([400, 'filter']);
  expect(await refused({ ids: ['x'] })).toEqual([400, 'ids']);
  expect(await refused({ filter: { fingerprint: 'x' } })).toEqual([400, 'filter']);
  expect(await refused({ filter: { deadFrom: 'yesterday' } })).toEqual([400, 'filter.deadFrom']);
  expect(await refused({ filter: {}, ratePerSecond: 0 })).toEqual([400, 'ratePerSecond']);
  expect((await post('/v1/replays', { ids: [randomUUID()] }, operator)).body.error.field).toBe('tenant');
});
