import { jetstreamManager } from '@nats-io/jetstream';
import type pg from 'pg';
import { afterEach, expect, test } from 'vitest';
import { createProjector } from '../../projections/engine/projector.ts';
import { createProjectionDesk } from '../../projections/engine/rebuild/desk.ts';
import { differences } from '../../projections/engine/rebuild/job.ts';
import { createRebuilder } from '../../projections/engine/rebuild/rebuilder.ts';
import { projections } from '../../projections/projections.ts';
import { createDispatcher } from '../../src/dispatch/dispatcher.ts';
import { createWorker } from '../../src/index.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { migrate } from '../../src/platform/migrate.ts';
import { createPool } from '../../src/platform/postgres.ts';
import { eventually } from '../support/eventually.ts';
import { gate } from '../support/gate.ts';
import { openModelDatabase, recordingLogger } from '../support/read-models.ts';
import { testNamespace, testNatsUrl } from '../support/servers.ts';
import { openTaskWorld, type TaskWorld, TYPE } from '../support/task-world.ts';

const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** However much else the machine does. */
const WITHIN = { timeoutMs: 60_000 };
const SETTINGS = { ackWaitMs: 2_000, leaderLeaseMs: 1_500, reconcileEveryMs: 500, auditDays: 3_650 };
const POLICY = { backoff: { kind: 'fixed', baseMs: 300 }, backoffFloorMs: 0 } as const;

/** Lets the read models be verified against the log; a rebuilder must run. */
async function expectNoDifference({
  nc,
  names,
  config,
  pool,
}: Pick<TaskWorld, 'nc' | 'names' | 'config'> & { pool: pg.Pool }): Promise<void> {
  const models = projections(config);
  const desk = createProjectionDesk({
    nc,
    names,
    postgres: pool,
    projections: models.map(({ name }) => name),
  });
  const { id } = await desk.verify('all', { by: 'test' });
  const job = await eventually(async () => {
    const seen = await desk.job(id);
    return seen.finishedAt === null ? false : seen;
  }, WITHIN);
  expect(job.error).toBeNull();
  expect((job.report?.tables ?? []).map((table) => [table.table, differences(table)])).toEqual(
    models.flatMap(({ tables }) => tables.map(({ name }) => [name, 0])),
  );
}

test('with every consumer, snapshot, timer and lease lost while tasks are under way, each still completes once and the read models are right', async () => {
  const world = await openTaskWorld(testNamespace(import.meta.url), SETTINGS);
  closers.push(() => world.stop());
  const { names, config, nc } = world;
  const database = await openModelDatabase(import.meta.url);
  closers.push(() => database.close());
  const longPool = createPool({ ...config, databaseUrl: database.url, databaseTimeoutMs: 60_000 }, 'loss');
  closers.push(() => longPool.end());
  const models = () => projections(config);
  const start = async <S extends { start(): Promise<void>; stop(): Promise<void> }>(
    service: S,
  ): Promise<S> => {
    closers.push(() => service.stop());
    await service.start();
    return service;
  };
  const parts = { nc, names, logger: silentLogger };
  const own = await world.connect();
  await start(own.clock);
  const wired = { ...parts, config, clock: own.clock };
  const projector = await start(createProjector({ ...wired, pool: database.pool, projections: models() }));
  await start(createRebuilder({ ...wired, pool: longPool, projections: models }));
  const dispatch = () => start(createDispatcher({ ...wired, ...own }));
  const dispatcher = await dispatch();
  const lost = gate();
  let begun = 0;
  await start(
    createWorker({
      nats: testNatsUrl(),
      prefix: names.prefix,
      logger: silentLogger,
      concurrency: 5,
      shutdownGraceMs: 500,
      types: {
        async [TYPE]({ attempt }) {
          begun += 1;
          if (attempt === 1 && begun % 3 === 0) throw new Error('again');
          if (begun > 20) await lost.opened;
          return null;
        },
      },
    }),
  );
  const ids: string[] = [];
  for (let n = 0; n < 60; n += 1) ids.push(await world.ingest({ policy: POLICY }));
  for (let n = 0; n < 5; n += 1) ids.push(await world.ingest({ runAt: Date.now() + 3_000 }));
  // Attempts that run, retries and delayed tasks that wait, work items that nobody has claimed.
  await eventually(() => world.count('PROCESSING') === 5 && world.count('QUEUED') > 0 && begun > 20, {
    timeoutMs: 60_000,
  });

  const jsm = await jetstreamManager(nc, { checkAPI: false });
  for (const stream of Object.values(names.streams))
    for await (const { name } of jsm.consumers.list(stream)) await jsm.consumers.delete(stream, name);
  await jsm.streams.purge(names.streams.timers);
  await jsm.streams.purge(`KV_${names.buckets.leaders}`);
  // With its memory, and with what it has written down of that, if it has.
  await dispatcher.stop();
  await jsm.streams.delete(`OBJ_${names.snapshots}`).catch(() => false);
  await dispatch();
  lost.open();

  await eventually(() => ids.every((id) => world.kindsOf(id).at(-1) === 'COMPLETED'), { timeoutMs: 60_000 });
  for (const id of ids) expect(world.kindsOf(id).filter((kind) => kind === 'COMPLETED')).toHaveLength(1);
  await projector.whenCaughtUp((await world.log.bounds()).lastSeq);
  await expectNoDifference({ nc, names, config, pool: database.pool });
});

test('a schema that is dropped under running projectors comes back by itself, with every row', async () => {
  const world = await openTaskWorld(testNamespace(import.meta.url).replace('_', 'pg_'), SETTINGS);
  closers.push(() => world.stop());
  const { names, config, nc } = world;
  const database = await openModelDatabase(import.meta.url);
  closers.push(() => database.close());
  const own = await world.connect();
  await own.clock.start();
  closers.push(() => own.clock.stop());
  const startProjector = async () => {
    const logger = recordingLogger();
    const projector = createProjector({
      nc,
      names,
      config,
      clock: own.clock,
      logger,
      pool: database.pool,
      projections: projections(config),
      migrate: () => migrate(database.url, { logger: silentLogger }),
    });
    closers.push(() => projector.stop());
    await projector.start();
    return { projector, logger };
  };
  const projectors = [await startProjector(), await startProjector()];
  const longPool = createPool({ ...config, databaseUrl: database.url, databaseTimeoutMs: 60_000 }, 'loss');
  closers.push(() => longPool.end());
  const rebuilder = createRebuilder({
    nc,
    names,
    clock: own.clock,
    logger: silentLogger,
    pool: longPool,
    projections: () => projections(config),
  });
  closers.push(() => rebuilder.stop());
  await rebuilder.start();
  const caughtUp = async () => {
    const { lastSeq } = await world.log.bounds();
    for (const { projector } of projectors) await projector.whenCaughtUp(lastSeq);
  };
  await world.work();
  for (let n = 0; n < 30; n += 1) await world.ingest();
  await caughtUp();

  await database.pool.query('drop schema public cascade');
  await world.ingest();
  await eventually(() => projectors.some(({ projector }) => projector.stats().outage !== undefined), WITHIN);
  await database.pool.query('create schema public');
  const made = () =>
    projectors.flatMap(({ logger }) =>
      logger.lines.filter(({ message }) => message.startsWith('the tables of the read models were gone')),
    );
  await eventually(() => made().length > 0, WITHIN);
  await caughtUp();
  await eventually(async () => {
    const { rows } = await database.pool.query('select count(*)::int as tasks from tasks');
    return rows[0]?.tasks === 31;
  }, WITHIN);
  expect(made()).toHaveLength(1);
  expect(projectors.map(({ projector }) => projector.stats().poisoned)).toEqual([0, 0]);
  await expectNoDifference({ nc, names, config, pool: database.pool });
});
