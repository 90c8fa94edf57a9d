import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { TaskledgerError } from '../domain/errors.ts';
import { postgresReason } from './postgres.ts';

/** The migrations beside the sources, and beside the build: both lie two folders up. */
export const MIGRATIONS_DIR = fileURLToPath(new URL('../../migrations', import.meta.url));

/** Any constant will do, as long as every version of the program uses the same. */
const ADVISORY_LOCK = 7_204_511_881;
const FILE_NAME = /^\d{4}_[a-z0-9_]+\.sql$/;

interface Migration {
  readonly name: string;
  readonly sql: string;
  readonly checksum: string;
}

interface MigrateLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

/**
 * Brings the database up to date: forward only, in the order of the files' numbers, one transaction a file.
 *
 * `schema`: makes the tables there, and looks nowhere else; it must exist. Migrations therefore name no schema.
 * Safe to call from several processes at once: an advisory lock lets one work while the others wait and then find
 * nothing to do. Given a URL, a database that does not exist is created.
 * Throws `migration_changed` when an applied file is no longer the same, `migration_failed` when one fails (nothing of
 * that file stays), and the connection's own error when Postgres cannot be reached.
 */
export async function migrate(
  database: string | pg.Pool,
  { dir = MIGRATIONS_DIR, logger, schema }: { dir?: string; logger: MigrateLogger; schema?: string },
): Promise<{ applied: string[] }> {
  const files = await readMigrations(dir);
  const client = await connect(database, logger);
  // Its own connection, not one of a pool: pools limit how long a statement may take, and a migration may take longer.
  try {
    await client.query('select pg_advisory_lock($1)', [ADVISORY_LOCK]);
    if (schema !== undefined) await client.query(`set search_path = ${client.escapeIdentifier(schema)}`);
    return { applied: await applyAll(client, files, logger) };
  } finally {
    await client.end().catch(() => undefined);
  }
}

async function readMigrations(dir: string): Promise<Migration[]> {
  const entries = (await readdir(dir)).filter((entry) => FILE_NAME.test(entry)).sort();
  return Promise.all(
    entries.map(async (name) => {
      // A checkout may have rewritten the line ends; that is no change.
      const sql = (await readFile(join(dir, name), 'utf8')).replaceAll('\r\n', '\n');
      return { name, sql, checksum: createHash('sha256').update(sql).digest('hex') };
    }),
  );
}

async function applyAll(
  client: pg.Client,
  files: readonly Migration[],
  logger: MigrateLogger,
): Promise<string[]> {
  await client.query(`create table if not exists schema_migration (
    name text primary key, checksum text not null, applied_at timestamptz not null default now())`);
  const { rows } = await client.query<{ name: string; checksum: string }>(
    'select name, checksum from schema_migration',
  );
  const done = new Map(rows.map(({ name, checksum }) => [name, checksum]));
  const applied: string[] = [];
  for (const file of files) {
    const checksum = done.get(file.name);
    done.delete(file.name);
    if (checksum === file.checksum) continue;
    if (checksum !== undefined) throw new TaskledgerError('migration_changed', { name: file.name });
    await applyOne(client, file);
    logger.info({ migration: file.name }, 'migration applied');
    applied.push(file.name);
  }
  if (done.size > 0)
    logger.warn(
      { migrations: [...done.keys()] },
      'the database has migrations that this version does not know',
    );
  return applied;
}

async function applyOne(client: pg.Client, { name, sql, checksum }: Migration): Promise<void> {
  try {
    await client.query('begin');
    await client.query(sql);
    await client.query('insert into schema_migration (name, checksum) values ($1, $2)', [name, checksum]);
    await client.query('commit');
  } catch (cause) {
    await client.query('rollback').catch(() => undefined);
    throw new TaskledgerError('migration_failed', { name, reason: postgresReason(cause) }, { cause });
  }
}

async function connect(database: string | pg.Pool, logger: MigrateLogger): Promise<pg.Client> {
  const connectionString = typeof database === 'string' ? database : database.options.connectionString;
  if (connectionString === undefined) throw new TypeError('the pool was made without a connection string');
  try {
    return await connected(connectionString);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || error.code !== UNKNOWN_DATABASE) throw error;
  }
  await createDatabase(connectionString, logger);
  return connected(connectionString);
}

const UNKNOWN_DATABASE = '3D000';
/** The database, or the catalogue row of one that another process is creating right now. */
const EXISTS_ALREADY = new Set(['42P04', '23505']);

async function createDatabase(connectionString: string, logger: MigrateLogger): Promise<void> {
  const url = new URL(connectionString);
  const name = decodeURIComponent(url.pathname.slice(1));
  url.pathname = '/postgres';
  const client = await connected(url.href);
  try {
    await client.query(`create database ${client.escapeIdentifier(name)}`);
    logger.info({ database: name }, 'database created');
  } catch (error) {
    if (!(error instanceof pg.DatabaseError) || !EXISTS_ALREADY.has(error.code ?? '')) throw error;
  } finally {
    await client.end();
  }
}

async function connected(connectionString: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString,
    application_name: 'taskledger migrate',
    connectionTimeoutMillis: 5_000,
  });
  client.on('error', () => undefined);
  await client.connect();
  return client;
}
