import { afterAll, expect, onTestFinished, test } from 'vitest';
import { createProjectionDesk } from '../../projections/engine/rebuild/desk.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { type Config, loadConfig } from '../../src/platform/config.ts';
import { migrate } from '../../src/platform/migrate.ts';
import { createPool } from '../../src/platform/postgres.ts';
import { Database } from '../../src/query/database.ts';
import { createQuery } from '../../src/query/postgres-query.ts';
import { checkpoints } from '../../src/query/sql.ts';
import { eventually } from '../support/eventually.ts';
import { openModelDatabase, recordingLogger } from '../support/read-models.ts';
import { connectTestNats, createTestDatabase, testNamespace } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

const [migrated, empty] = [
  await openModelDatabase(import.meta.url),
  await createTestDatabase(import.meta.url),
];
afterAll(async () => {
  await migrated.close();
  await empty.drop();
});

const ONE = { text: 'select 1 as one', values: [] };
const REFUSED = { code: 'read_model_unavailable', status: 503 };
/** Longer than a test may take. */
const NEVER_MS = 600_000;

/** A database behind a proxy that has answered `kept` questions at once, so that as many connections are kept. */
async function setup({ kept = 1, databaseUrl = migrated.url, ...over }: Partial<Config> & { kept?: number }) {
  const url = new URL(databaseUrl);
  const proxy = await startTcpProxy({ host: url.hostname, port: Number(url.port) });
  url.hostname = '127.0.0.1';
  url.port = String(proxy.port);
  const config = { ...loadConfig({}), ...over, databaseUrl: url.href };
  const pool = createPool(config, 'away');
  const logger = recordingLogger();
  const database = new Database({ pool, logger, lookEveryMs: config.databaseLookEveryMs });
  onTestFinished(async () => {
    await proxy.close();
    await pool.end();
  });
  await Promise.all(Array.from({ length: kept }, () => database.rows(ONE)));
  return { proxy, pool, database, logger };
}

/** Asks until the circuit is open: every connection is reset, so each question fails when it is asked. */
async function openCircuit({ proxy, database }: { proxy: TcpProxy; database: Database }): Promise<void> {
  proxy.cut();
  for (let n = 0; n < 3; n++) await expect(database.rows(ONE)).rejects.toMatchObject(REFUSED);
}

test('while a look waits for a server that says nothing, whoever began it and whoever comes later is refused', async () => {
  const { proxy, database, logger, pool } = await setup({
    databaseConnectTimeoutMs: NEVER_MS,
    databaseLookEveryMs: 50,
  });
  await openCircuit({ proxy, database });
  proxy.blackhole();
  await eventually(async () => {
    await expect(database.rows(ONE)).rejects.toMatchObject(REFUSED);
    return proxy.swallowedBytes() > 0;
  });
  await expect(database.rows(ONE)).rejects.toMatchObject(REFUSED);
  expect([pool.totalCount, proxy.connections()]).toEqual([1, 1]);

  proxy.pass();
  await eventually(async () => expect(await database.rows(ONE)).toEqual([{ one: 1 }]));
  expect(logger.lines.map(({ message }) => message)).toEqual([
    'Postgres does not answer; queries are refused until it does',
    'Postgres answers again',
  ]);
});

test('between two looks nothing reaches Postgres', async () => {
  const { proxy, database, pool } = await setup({ databaseLookEveryMs: NEVER_MS });
  await openCircuit({ proxy, database });
  proxy.blackhole();
  for (let n = 0; n < 20; n++) await expect(database.rows(ONE)).rejects.toMatchObject(REFUSED);
  expect([pool.totalCount, proxy.swallowedBytes()]).toEqual([0, 0]);
});

test('whoever waits for an answer when Postgres is found to be away is refused then', async () => {
  const { proxy, database, pool } = await setup({
    databasePoolSize: 1,
    databaseTimeoutMs: NEVER_MS,
    databaseConnectTimeoutMs: 100,
  });
  proxy.blackhole();
  const waiting = database.rows(ONE);
  const others = Array.from({ length: 3 }, () => database.rows(ONE));
  const answers = await Promise.allSettled([waiting, ...others]);
  expect(answers).toEqual(
    answers.map(() => ({ status: 'rejected', reason: expect.objectContaining(REFUSED) })),
  );
  expect(pool.totalCount).toBe(1);
});

test('connections of before the outage are closed when it is found, so that nobody waits for them afterwards', async () => {
  const { proxy, database, pool } = await setup({ kept: 5, databaseTimeoutMs: 100 });
  expect(pool.idleCount).toBe(5);
  proxy.blackhole();
  await Promise.allSettled([1, 2, 3].map(() => database.rows(ONE)));
  await eventually(() => pool.totalCount === 0);
  proxy.pass();
  await eventually(async () => expect(await database.rows(ONE)).toEqual([{ one: 1 }]));
});

test('a Postgres without read models is away until they are made, and is told of once', async () => {
  const { database, logger } = await setup({ databaseUrl: empty.url, databaseLookEveryMs: 50 });
  for (let n = 0; n < 3; n++) await expect(database.rows(checkpoints)).rejects.toMatchObject(REFUSED);
  const startedAt = performance.now();
  await eventually(async () => {
    await expect(database.rows(ONE)).rejects.toMatchObject(REFUSED);
    return performance.now() - startedAt > 300;
  });
  await migrate(empty.url, { logger: silentLogger });
  await eventually(async () => expect(await database.rows(checkpoints)).toEqual([]));
  expect(logger.lines.map(({ level }) => level)).toEqual(['error', 'info']);
});

test('work on the read models is refused by the same breaker, with how far they are behind, and none of it reaches Postgres', async () => {
  const { proxy, pool, logger } = await setup({});
  const nc = await connectTestNats();
  onTestFinished(() => nc.close());
  const names = namesOf(testNamespace(import.meta.url));
  await ensureStreams({ nc, names, config: loadConfig({}), logger: silentLogger });
  const lastSeq = async () => 7;
  const query = createQuery({ pool, nc, names, lastSeq, lookEveryMs: NEVER_MS, logger });
  const desk = createProjectionDesk({ postgres: query.postgres, nc, names, projections: ['tasks'] });
  expect((await desk.status()).jobs).toEqual([]);
  await query.position();

  proxy.cut();
  for (let n = 0; n < 3; n++) await expect(query.position()).rejects.toMatchObject(REFUSED);
  proxy.blackhole();
  const refused = { ...REFUSED, details: { lagEvents: 7, reason: expect.stringContaining('7 events') } };
  const [id, by] = ['00000000-0000-4000-8000-000000000000', 'test'];
  await expect(desk.status()).rejects.toMatchObject(refused);
  await expect(desk.job(id)).rejects.toMatchObject(refused);
  await expect(desk.stop(id)).rejects.toMatchObject(refused);
  await expect(desk.verify('tasks', { by })).rejects.toMatchObject(refused);
  await expect(desk.rebuild('tasks', { acceptLoss: true, by })).rejects.toMatchObject(refused);
  await expect(desk.build({ schema: 'then', until: { seq: 1 }, by })).rejects.toMatchObject(refused);
  expect([pool.totalCount, proxy.swallowedBytes()]).toEqual([0, 0]);
});
