import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, expect, test } from 'vitest';
import { auditProjection } from '../../projections/audit/projection.ts';
import { silentLogger as logger } from '../../src/observe/log.ts';
import { MIGRATIONS_DIR, migrate } from '../../src/platform/migrate.ts';
import { randomLives } from '../support/random-lives.ts';
import { openModelDatabase, recordingLogger } from '../support/read-models.ts';
import { createTestDatabase, type TestDatabase } from '../support/servers.ts';

const closers: (() => Promise<unknown>)[] = [];
afterAll(async () => {
  for (const close of closers.reverse()) await close();
});

/** An empty database and a folder with these migrations. */
async function setup(files: Record<string, string>): Promise<{ database: TestDatabase; dir: string }> {
  const database = await createTestDatabase(import.meta.url);
  const dir = await mkdtemp(join(tmpdir(), 'taskledger-migrations-'));
  closers.push(
    () => database.drop(),
    () => rm(dir, { recursive: true }),
  );
  for (const [name, sql] of Object.entries(files)) await writeFile(join(dir, name), sql);
  return { database, dir };
}

async function rowsOf(url: string, sql: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query(sql);
  await client.end();
  return rows;
}

test('every migration of the project is applied in order, once', async () => {
  const { database } = await setup({});
  const files = (await readdir(MIGRATIONS_DIR)).filter((name) => name.endsWith('.sql')).sort();
  expect(await migrate(database.url, { logger })).toEqual({ applied: files });
  expect(await migrate(database.url, { logger })).toEqual({ applied: [] });
});

test('processes that migrate at the same time apply each migration once', async () => {
  const { database, dir } = await setup({
    '0001_one.sql': 'create table one (n int)',
    '0002_two.sql': 'insert into one values (1)',
  });
  const done = await Promise.all([1, 2, 3, 4].map(() => migrate(database.url, { dir, logger })));
  expect(done.flatMap(({ applied }) => applied)).toEqual(['0001_one.sql', '0002_two.sql']);
  expect(await rowsOf(database.url, 'select n from one')).toEqual([{ n: 1 }]);
});

test('a database that does not exist is created', async () => {
  const { database, dir } = await setup({ '0001_one.sql': 'create table one (n int)' });
  await database.drop();
  expect(await migrate(database.url, { dir, logger })).toEqual({ applied: ['0001_one.sql'] });
});

test('a migration that fails leaves nothing behind, and the next start tries it again', async () => {
  const { database, dir } = await setup({
    '0001_one.sql': 'create table one (n int)',
    '0002_two.sql': 'create table two (n int); insert into nowhere values (1)',
  });
  await expect(migrate(database.url, { dir, logger })).rejects.toMatchObject({
    code: 'migration_failed',
    details: { name: '0002_two.sql', reason: expect.stringContaining('nowhere') },
  });
  expect(await rowsOf(database.url, "select to_regclass('two') as two, to_regclass('one') as one")).toEqual([
    { two: null, one: 'one' },
  ]);
  await writeFile(join(dir, '0002_two.sql'), 'create table two (n int)');
  expect(await migrate(database.url, { dir, logger })).toEqual({ applied: ['0002_two.sql'] });
});

test('an applied migration that was changed is refused; other line ends are no change', async () => {
  const { database, dir } = await setup({ '0001_one.sql': 'create table one (\n n int)' });
  await migrate(database.url, { dir, logger });
  await writeFile(join(dir, '0001_one.sql'), 'create table one (\r\n n int)');
  await migrate(database.url, { dir, logger });
  await writeFile(join(dir, '0001_one.sql'), 'create table one (\n n bigint)');
  await expect(migrate(database.url, { dir, logger })).rejects.toMatchObject({
    code: 'migration_changed',
    details: { name: '0001_one.sql' },
  });
});

test('a database that is ahead of the program is left alone, with a warning', async () => {
  const { database, dir } = await setup({ '0001_one.sql': '', '0002_two.sql': '' });
  await migrate(database.url, { dir, logger });
  await rm(join(dir, '0002_two.sql'));
  const recorded = recordingLogger();
  await migrate(database.url, { dir, logger: recorded });
  expect(recorded.lines).toMatchObject([{ level: 'warn', fields: { migrations: ['0002_two.sql'] } }]);
});

test('partitions of the audit are made ahead, dropped when their days are over, and not made again for old events', async () => {
  const database = await openModelDatabase(import.meta.url);
  closers.push(() => database.close());
  const audit = auditProjection({ auditDays: 2 });
  const client = await database.pool.connect();
  const partitions = async () =>
    (
      await client.query<{ name: string }>(
        "select relname as name from pg_class where relname ~ '^audit_[0-9]{8}$' and relkind = 'r' order by 1",
      )
    ).rows.map(({ name }) => name);
  await audit.maintain?.(client, Date.parse('2026-03-01T12:00:00Z'));
  expect(await partitions()).toEqual(['audit_20260301', 'audit_20260302', 'audit_20260303']);
  await audit.maintain?.(client, Date.parse('2026-03-03T00:00:00Z'));
  await audit.maintain?.(client, Date.parse('2026-03-03T01:00:00Z'));
  expect(await partitions()).toEqual([
    'audit_20260302',
    'audit_20260303',
    'audit_20260304',
    'audit_20260305',
  ]);
  const old = randomLives({ seed: 1, tasks: 1, events: 3 });
  const changes = audit.apply(old);
  await audit.prepare?.(client, changes);
  await audit.write(client, changes);
  const { rows } = await client.query('select count(*)::int as n from audit');
  client.release();
  expect(rows).toEqual([{ n: 0 }]);
});
