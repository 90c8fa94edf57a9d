import pg from 'pg';
import { TaskledgerError } from '../../../src/domain/errors.ts';
import type { Logger } from '../../../src/observe/log.ts';
import { migrate } from '../../../src/platform/migrate.ts';

const ident = pg.escapeIdentifier;
const literal = pg.escapeLiteral;

/** What a schema's comment says of the job that made it; a schema without it is somebody else's and never touched. */
const markOf = (jobId: string): string => `taskledger job ${jobId}`;
const MARK = /^taskledger job ([0-9a-f-]{36})$/;

/**
 * Makes a job's schema, with every table that the migrations make, or finds the one that the job has left. Secondary
 * indexes are kept for later: filling a table first and indexing it then is several times cheaper.
 * Throws `schema_in_use` for a schema that is not one of ours.
 */
export async function openShadow(
  pool: pg.Pool,
  { schema, jobId, logger }: { schema: string; jobId: string; logger: Logger },
): Promise<void> {
  const owner = await ownerOf(pool, schema);
  if (owner === markOf(jobId) && (await isReady(pool, schema))) return;
  if (owner !== undefined && !MARK.test(owner)) throw new TaskledgerError('schema_in_use', { schema });
  await pool.query(`drop schema if exists ${ident(schema)} cascade`);
  await pool.query(`create schema ${ident(schema)}`);
  await pool.query(`comment on schema ${ident(schema)} is ${literal(markOf(jobId))}`);
  await migrate(pool, { schema, logger });
  await setIndexesAside(pool, schema);
}

/** Undefined when there is no such schema, '' when it says nothing. */
async function ownerOf(pool: pg.Pool, schema: string): Promise<string | undefined> {
  const { rows } = await pool.query<{ owner: string | null }>(
    `select obj_description(oid, 'pg_namespace') as owner from pg_namespace where nspname = $1`,
    [schema],
  );
  return rows[0] === undefined ? undefined : (rows[0].owner ?? '');
}

const isReady = async (pool: pg.Pool, schema: string): Promise<boolean> => {
  const { rows } = await pool.query<{ ready: boolean }>('select to_regclass($1) is not null as ready', [
    `${ident(schema)}.index_set_aside`,
  ]);
  return rows[0]?.ready ?? false;
};

/** In one transaction, so that a crash leaves either all indexes or the list of all. */
async function setIndexesAside(pool: pg.Pool, schema: string): Promise<void> {
  await pool.query(`do $$ declare each record; begin
    create table ${ident(schema)}.index_set_aside as
      select i.relname::text as name, replace(pg_get_indexdef(i.oid), ' ON ONLY ', ' ON ') as definition
      from pg_index x join pg_class i on i.oid = x.indexrelid
      where i.relnamespace = to_regnamespace(${literal(ident(schema))})
        and not exists (select from pg_constraint c where c.conindid = i.oid)
        and not i.relispartition;
    for each in select name from ${ident(schema)}.index_set_aside loop
      execute format('drop index %I.%I', ${literal(schema)}, each.name);
    end loop;
  end $$`);
}

/** Makes the indexes that are not there yet. */
export async function makeIndexes(pool: pg.Pool, schema: string, signal: AbortSignal): Promise<void> {
  const { rows } = await pool.query<{ name: string; definition: string }>(
    `select name, definition from ${ident(schema)}.index_set_aside
     where to_regclass(format('%I.%I', $1::text, name)) is null`,
    [schema],
  );
  for (const { definition } of rows) {
    signal.throwIfAborted();
    await pool.query(definition);
  }
}

export const dropShadow = async (pool: pg.Pool, schema: string): Promise<void> => {
  await pool.query(`drop schema if exists ${ident(schema)} cascade`);
};

/** Drops what rebuilds and verifications have left that no job needs any more. */
export async function dropAbandoned(pool: pg.Pool): Promise<string[]> {
  const { rows } = await pool.query<{ schema: string }>(
    `select nspname::text as schema from pg_namespace n
     join projection_job j on obj_description(n.oid, 'pg_namespace') = 'taskledger job ' || j.id
     where j.kind <> 'build' and j.state in ('done', 'failed', 'discarded')
        or j.kind = 'build' and j.state in ('failed', 'discarded')`,
  );
  for (const { schema } of rows) await dropShadow(pool, schema);
  return rows.map(({ schema }) => schema);
}
