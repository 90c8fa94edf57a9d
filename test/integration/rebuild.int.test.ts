import { jetstreamManager } from '@nats-io/jetstream';
import { afterEach, describe, expect, test } from 'vitest';
import { createProjectionDesk, type ProjectionDesk } from '../../projections/engine/rebuild/desk.ts';
import type { Job } from '../../projections/engine/rebuild/job.ts';
import { createRebuilder } from '../../projections/engine/rebuild/rebuilder.ts';
import { projections } from '../../projections/projections.ts';
import type { Logger } from '../../src/observe/log.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { createPool } from '../../src/platform/postgres.ts';
import { eventually } from '../support/eventually.ts';
import { randomLives } from '../support/random-lives.ts';
import {
  type LogGround,
  type ModelDatabase,
  openLogGround,
  openModelDatabase,
  recordingLogger,
} from '../support/read-models.ts';
import { testNamespace } from '../support/servers.ts';

const models = () => projections({ auditDays: 3_650 });
const NAMES = models().map(({ name }) => name);
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

let grounds = 0;
async function setup() {
  const database = await openModelDatabase(import.meta.url);
  closers.push(() => database.close());
  grounds += 1;
  const ground = await openLogGround(testNamespace(import.meta.url).replace('_', `${grounds}_`));
  closers.push(() => ground.stop());
  return { ground, database, ...deskOn(ground, database) };
}

function deskOn(ground: LogGround, database: ModelDatabase) {
  const { nc, names } = ground;
  const desk = createProjectionDesk({ postgres: database.pool, nc, names, projections: NAMES });
  /** `fails` is asked before each statement: what it answers is thrown instead. */
  const startRebuilder = async (
    logger: Logger = silentLogger,
    fails: (text: string) => Error | undefined = () => undefined,
  ) => {
    const pool = createPool(
      { ...loadConfig({}), databaseUrl: database.url, databaseTimeoutMs: 60_000 },
      'test rebuild',
    );
    const query = pool.query.bind(pool) as (...asked: unknown[]) => Promise<unknown>;
    Object.assign(pool, {
      async query(...asked: unknown[]) {
        const failure = fails(String(asked[0]));
        if (failure !== undefined) throw failure;
        return query(...asked);
      },
    });
    const rebuilder = createRebuilder({ nc, names, pool, projections: models, clock: systemClock, logger });
    closers.push(async () => {
      await rebuilder.stop();
      await pool.end();
    });
    await rebuilder.start();
    return rebuilder;
  };
  return { desk, startRebuilder };
}

const whenEnded = (desk: ProjectionDesk, { id }: Job): Promise<Job> =>
  eventually(
    async () => {
      const job = await desk.job(id);
      return job.finishedAt === null ? false : job;
    },
    { timeoutMs: 60_000 },
  );

const by = 'ada';
const foundBy = ({ report }: Job) =>
  Object.fromEntries(
    (report?.tables ?? []).map(({ table, missing, surplus, changed, fromSeq }) => [
      table,
      { missing, surplus, changed, fromSeq },
    ]),
  );
const NO_DIFFERENCE = { missing: 0, surplus: 0, changed: 0, fromSeq: null };

describe('a read model', () => {
  test('is verified and rebuilt beside the live one while events go on, and the projector does not notice', async () => {
    const { ground, database, desk, startRebuilder } = await setup();
    const projector = ground.projector(database.pool);
    const lines = recordingLogger();
    await projector.start();
    const events = randomLives({ seed: 21, tasks: 60, events: 4_000 });
    await projector.whenCaughtUp(await ground.append(events.slice(0, 2_000)));
    const whole = await database.hashes();
    await startRebuilder(lines);
    const clean = await whenEnded(desk, await desk.verify('all', { by }));
    expect(Object.keys(foundBy(clean))).toContain('dead_letter_groups');
    for (const found of Object.values(foundBy(clean))) expect(found).toEqual(NO_DIFFERENCE);

    const { rows } = await database.pool.query<{ id: string; seq: string }>(
      'select id, seq from tasks order by seq limit 3',
    );
    const [gone, changed] = rows;
    await database.pool.query('delete from tasks where id = $1', [gone?.id]);
    await database.pool.query(`update tasks set worker = 'nobody' where id = $1`, [changed?.id]);
    await database.pool.query('update queues set count = count + 1 where status = $1', ['COMPLETED']);
    await database.pool.query(`update audit set stored_at = stored_at + interval '1 ms' where seq = 1500`);
    const damaged = await whenEnded(desk, await desk.verify('all', { by }));
    expect(damaged.error).toBeNull();
    expect(foundBy(damaged)).toMatchObject({
      tasks: { missing: 1, surplus: 0, changed: 1, fromSeq: Number(gone?.seq) },
      audit: { missing: 0, surplus: 0, changed: 1, fromSeq: 1_500 },
      queues: { missing: 0, surplus: 0 },
    });
    const sample = damaged.report?.tables?.[0]?.sample ?? [];
    expect(sample.map(({ key, columns }) => [key['id'], columns])).toEqual([
      [gone?.id, []],
      [changed?.id, ['worker']],
    ]);
    expect(sample[1]?.live).toEqual({ worker: 'nobody' });
    const audit = damaged.report?.tables?.find(({ table }) => table === 'audit');
    expect(audit?.sample).toMatchObject([{ key: { seq: '1500' }, columns: ['stored_at'] }]);

    let appended = 2_000;
    let going = true;
    const writing = (async () => {
      for (; going && appended < events.length; appended += 20)
        await ground.append(events.slice(appended, appended + 20));
    })();
    const rebuilt = await whenEnded(desk, await desk.rebuild('all', { acceptLoss: false, by }));
    going = false;
    await writing;
    expect(rebuilt).toMatchObject({ state: 'done', requestedBy: 'ada', error: null });
    await projector.whenCaughtUp(appended);
    expect(projector.stats()).toMatchObject({ mode: 'leading', poisoned: 0 });
    const after = await whenEnded(desk, await desk.verify('all', { by }));
    for (const found of Object.values(foundBy(after))) expect(found).toEqual(NO_DIFFERENCE);
    expect(await database.hashes()).not.toEqual(whole);
    expect(await indexesOf(database)).toEqual(await indexesOf(await freshDatabase()));
    expect(lines.lines.filter(({ level }) => level === 'error')).toEqual([]);
  });

  test('is rebuilt from where another process left it', async () => {
    const { ground, database, desk, startRebuilder } = await setup();
    const projector = ground.projector(database.pool);
    await projector.start();
    await projector.whenCaughtUp(await ground.append(randomLives({ seed: 22, tasks: 60, events: 3_000 })));
    const expected = await database.hashes();
    // A lock that the switch needs: the job gets as far as the switch and no further.
    const reader = await database.pool.connect();
    await reader.query('begin; select from tasks limit 1');
    const first = await startRebuilder();
    const job = await desk.rebuild('tasks', { acceptLoss: false, by });
    await eventually(async () => (await desk.job(job.id)).phase === 'switching');
    await desk.stop(job.id);
    await reader.query('commit');
    reader.release();
    const stopped = await eventually(async () => {
      const seen = await desk.job(job.id);
      return seen.state === 'running' ? false : seen;
    });
    if (stopped.state === 'stopped') {
      await first.stop();
      await desk.resume(job.id);
      await startRebuilder();
    }
    expect(await whenEnded(desk, job)).toMatchObject({ state: 'done', position: 3_000 });
    expect(await database.hashes()).toEqual(expected);
  });

  test.each([
    { failure: new Error('Connection terminated unexpectedly'), ends: 'done', told: 'broken off' },
    { failure: new RangeError('bad'), ends: 'failed', told: 'failed' },
  ])(
    'goes on with its rebuild after $failure, unless that is for good: $ends',
    async ({ failure, ends, told }) => {
      const { ground, database, desk, startRebuilder } = await setup();
      const projector = ground.projector(database.pool);
      await projector.start();
      await projector.whenCaughtUp(await ground.append(randomLives({ seed: 24, tasks: 20, events: 500 })));
      const lines = recordingLogger();
      let failures = 0;
      await startRebuilder(lines, (text) => {
        if (!text.startsWith('analyze') || failures > 0) return undefined;
        failures += 1;
        return failure;
      });
      const job = await whenEnded(desk, await desk.rebuild('tasks', { acceptLoss: false, by }));
      expect(job).toMatchObject({ state: ends, error: ends === 'done' ? null : 'bad' });
      expect(lines.lines.map(({ message }) => message).join()).toContain(told);
    },
  );

  test('may be lost with all of Postgres, and with the hot window, and comes back from HISTORY', async () => {
    const { ground, database } = await setup();
    const projector = ground.projector(database.pool);
    await projector.start();
    const lastSeq = await ground.append(randomLives({ seed: 23, tasks: 40, events: 2_000 }));
    await projector.whenCaughtUp(lastSeq);
    const expected = await database.hashes();
    await projector.stop();
    const jsm = await jetstreamManager(ground.nc, { checkAPI: false });
    const { history, tasks } = ground.names.streams;
    await eventually(async () => (await jsm.streams.info(history)).state.messages === lastSeq);
    await jsm.streams.purge(tasks, { keep: 400 });
    const tail = 'select seq, stored_at from audit where seq > $1 order by seq';
    const { rows: stored } = await database.pool.query(tail, [lastSeq - 400]);

    const other = await freshDatabase();
    const rebuilding = ground.projector(other.pool);
    closers.push(() => rebuilding.stop());
    await rebuilding.start();
    await rebuilding.whenCaughtUp(lastSeq);
    const found = await other.hashes();
    expect({ tasks: found['tasks'], queues: found['queues'] }).toEqual({
      tasks: expected['tasks'],
      queues: expected['queues'],
    });
    expect((await other.pool.query(tail, [lastSeq - 400])).rows).toEqual(stored);
    await jsm.streams.purge(tasks);
    const { desk, startRebuilder } = deskOn(ground, other);
    await startRebuilder();
    const rebuilt = await whenEnded(desk, await desk.rebuild('all', { acceptLoss: false, by }));
    expect(rebuilt).toMatchObject({ state: 'done', error: null, position: lastSeq });
    const verified = await whenEnded(desk, await desk.verify('all', { by }));
    for (const found of Object.values(foundBy(verified))) expect(found).toEqual(NO_DIFFERENCE);
  });

  test('is as good when HISTORY has stored what TASKS no longer has at another instant', async () => {
    const { ground, database, desk, startRebuilder } = await setup();
    const projector = ground.projector(database.pool);
    await projector.start();
    const jsm = await jetstreamManager(ground.nc, { checkAPI: false });
    const { history, tasks } = ground.names.streams;
    const { sources = [] } = (await jsm.streams.info(history)).config;
    await jsm.streams.update(history, { sources: [] });
    const lastSeq = await ground.append(randomLives({ seed: 26, tasks: 10, events: 300 }));
    await projector.whenCaughtUp(lastSeq);
    const at = Date.now();
    await eventually(() => Date.now() > at + 5);
    await jsm.streams.update(history, { sources });
    await eventually(async () => (await jsm.streams.info(history)).state.messages === lastSeq);
    await jsm.streams.purge(tasks, { keep: 100 });
    await startRebuilder();
    const clean = await whenEnded(desk, await desk.verify('all', { by }));
    const rebuilt = await whenEnded(desk, await desk.rebuild('all', { acceptLoss: false, by }));
    expect(rebuilt).toMatchObject({ state: 'done', position: lastSeq });
    const after = await whenEnded(desk, await desk.verify('all', { by }));
    for (const job of [clean, after])
      for (const found of Object.values(foundBy(job))) expect(found).toEqual(NO_DIFFERENCE);
  });

  test('is not rebuilt from less than everything unless the loss is accepted', async () => {
    const { ground, database, desk, startRebuilder } = await setup();
    const projector = ground.projector(database.pool);
    await projector.start();
    await projector.whenCaughtUp(await ground.append(randomLives({ seed: 24, tasks: 10, events: 200 })));
    const jsm = await jetstreamManager(ground.nc, { checkAPI: false });
    await eventually(
      async () => (await jsm.streams.info(ground.names.streams.history)).state.messages === 200,
    );
    await jsm.streams.purge(ground.names.streams.tasks, { keep: 50 });
    await jsm.streams.purge(ground.names.streams.history, { keep: 120 });
    await expect(desk.rebuild('tasks', { acceptLoss: false, by })).rejects.toMatchObject({
      code: 'history_incomplete',
      details: { firstSeq: 81 },
    });
    await startRebuilder();
    const job = await whenEnded(desk, await desk.rebuild('tasks', { acceptLoss: true, by }));
    expect(job).toMatchObject({ state: 'done', position: 200 });
  });

  test('is built as of a sequence or an instant in a schema of its own', async () => {
    const { ground, database, desk, startRebuilder } = await setup();
    const projector = ground.projector(database.pool);
    await projector.start();
    const events = randomLives({ seed: 25, tasks: 20, events: 1_000 });
    await projector.whenCaughtUp(await ground.append(events.slice(0, 437)));
    const then = await database.hashes();
    const at = Date.now();
    await eventually(() => Date.now() > at + 5);
    // However far HISTORY is behind, an instant is that of the log.
    const jsm = await jetstreamManager(ground.nc);
    await jsm.streams.update(ground.names.streams.history, { sources: [] });
    await projector.whenCaughtUp(await ground.append(events.slice(437)));
    await startRebuilder();
    const schemas = { as_of_seq: { seq: 437 }, as_of_time: { at } } as const;
    for (const [schema, until] of Object.entries(schemas)) {
      const job = await whenEnded(desk, await desk.build({ schema, until, by }));
      expect(job).toMatchObject({ state: 'done', untilSeq: 437, position: 437 });
      expect(await database.hashes(schema)).toEqual(then);
    }
    await expect(desk.build({ schema: 'public', until: { seq: 1 }, by })).rejects.toMatchObject({
      code: 'schema_in_use',
    });
  });
});

async function freshDatabase(): Promise<ModelDatabase> {
  const database = await openModelDatabase(import.meta.url);
  closers.push(() => database.close());
  return database;
}

async function indexesOf({ pool }: ModelDatabase): Promise<unknown[]> {
  const { rows } = await pool.query(
    `select tablename, indexname from pg_indexes where schemaname = 'public'
     and tablename in ('tasks', 'audit', 'queues') order by 1, 2`,
  );
  return rows;
}
