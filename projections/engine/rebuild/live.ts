import pg from 'pg';
import { Superseded } from '../checkpoint.ts';
import type { LogState } from '../log-state.ts';
import type { ReadModel } from '../projection.ts';
import type { Builder } from './builder.ts';

const ident = pg.escapeIdentifier;

/** Longest wait for readers of the live tables; behind it, other readers queue. */
const LOCK_TIMEOUT_MS = 2_000;
/** Postgres says that a lock was not to be had in time, or that two waited for each other. */
const BUSY = new Set(['55P03', '40P01']);
const TRIES = 30;
const PAUSE_MS = 500;

interface LiveParts {
  readonly pool: pg.Pool;
  readonly projections: readonly ReadModel[];
  readonly builder: Builder;
  readonly schema: string;
  /** What the log is now: a checkpoint of another log says nothing. */
  readonly log: () => Promise<LogState>;
}

/** Sequence that the live tables reflect; the log's end when they are of another log, or go beyond it. */
export async function livePosition({ pool, projections, log }: Omit<LiveParts, 'builder' | 'schema'>) {
  const { rows } = await pool.query<CheckpointRow>(CHECKPOINTS, [projections.map(({ name }) => name)]);
  return positionOf(rows, await log());
}

interface CheckpointRow {
  readonly seq: string;
  readonly log_id: string;
}
const CHECKPOINTS = 'select seq, log_id from projection_checkpoint where name = any($1)';

function positionOf(rows: readonly CheckpointRow[], log: LogState): number {
  const sound = rows.every((row) => row.log_id === log.logId && Number(row.seq) <= log.lastSeq);
  return sound && rows.length > 0 ? Math.max(...rows.map((row) => Number(row.seq))) : log.lastSeq;
}

/**
 * Puts the built tables in the place of the live ones. While the transaction holds the checkpoints no projector can
 * commit; the builder applies what is missing up to them, so for readers and for the projector only the rows change.
 */
export async function switchTables(parts: LiveParts): Promise<number> {
  const { pool, projections, builder, schema } = parts;
  return patiently(async () => {
    const client = await pool.connect();
    const retired = `${schema}_retired`;
    try {
      await client.query(`drop schema if exists ${ident(retired)} cascade`);
      await client.query('begin');
      await client.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
      // All projectors take this lock first, so nobody waits for us while holding what we need.
      await client.query('lock table projection_checkpoint in share row exclusive mode');
      const position = await alignedUnder(client, parts);
      const live = await currentSchema(client);
      await client.query(`create schema ${ident(retired)}`);
      for (const { name } of projections.flatMap(({ tables }) => tables)) {
        await moveTable(client, { table: name, from: live, to: retired });
        await moveTable(client, { table: name, from: schema, to: live });
      }
      await client.query(MOVE_CHECKPOINTS(live, schema), [projections.map(({ name }) => name)]);
      await client.query(FORGET_POISON(live), [projections.map(({ name }) => name)]);
      await client.query(MOVE_POISON(live, schema), [projections.map(({ name }) => name)]);
      await client.query('commit');
      await client.query(`drop schema ${ident(retired)} cascade`);
      builder.close();
      return position;
    } catch (error) {
      await client.query('rollback').catch(() => undefined);
      throw error;
    } finally {
      client.release();
    }
  });
}

/** Runs `read` on a snapshot in which the live tables and the built ones reflect the same event. */
export async function onSameEvent<T>(
  parts: LiveParts,
  read: (client: pg.ClientBase, tables: { live: string; position: number }) => Promise<T>,
): Promise<T> {
  const { pool, projections } = parts;
  return patiently(async () => {
    const holder = await pool.connect();
    const reader = await pool.connect();
    try {
      await holder.query('begin');
      await holder.query(`set local lock_timeout = ${LOCK_TIMEOUT_MS}`);
      await holder.query('lock table projection_checkpoint in share row exclusive mode');
      const { rows } = await holder.query<CheckpointRow>(CHECKPOINTS, [projections.map(({ name }) => name)]);
      if (new Set(rows.map(({ seq }) => seq)).size > 1)
        throw new Superseded('read models at different events');
      const position = await alignedUnder(holder, parts);
      await reader.query('begin isolation level repeatable read, read only');
      const live = await currentSchema(reader);
      await holder.query('commit');
      const result = await read(reader, { live, position });
      await reader.query('commit');
      return result;
    } catch (error) {
      await holder.query('rollback').catch(() => undefined);
      await reader.query('rollback').catch(() => undefined);
      throw error;
    } finally {
      holder.release();
      reader.release();
    }
  });
}

async function alignedUnder(
  client: pg.ClientBase,
  { projections, builder, log }: LiveParts,
): Promise<number> {
  const { rows } = await client.query<CheckpointRow>(CHECKPOINTS, [projections.map(({ name }) => name)]);
  const position = positionOf(rows, await log());
  await builder.buildTo(position);
  return position;
}

async function currentSchema(client: pg.ClientBase): Promise<string> {
  const { rows } = await client.query<{ live: string }>('select current_schema() as live');
  return rows[0]?.live ?? 'public';
}

/** A partitioned table leaves its partitions behind: they are moved with it. */
async function moveTable(
  client: pg.ClientBase,
  { table, from, to }: { table: string; from: string; to: string },
): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select c.relname::text as name from pg_inherits i join pg_class c on c.oid = i.inhrelid
     where i.inhparent = to_regclass($1)`,
    [`${ident(from)}.${ident(table)}`],
  );
  for (const name of [table, ...rows.map((row) => row.name)])
    await client.query(`alter table ${ident(from)}.${ident(name)} set schema ${ident(to)}`);
}

const MOVE_CHECKPOINTS = (live: string, built: string): string => `
  insert into ${ident(live)}.projection_checkpoint (name, seq, log_id)
  select name, seq, log_id from ${ident(built)}.projection_checkpoint where name = any($1)
  on conflict (name) do update set seq = excluded.seq, log_id = excluded.log_id, at = now()`;
const FORGET_POISON = (live: string): string =>
  `delete from ${ident(live)}.projection_poison where projection = any($1)`;
const MOVE_POISON = (live: string, built: string): string => `
  insert into ${ident(live)}.projection_poison
  select * from ${ident(built)}.projection_poison where projection = any($1)`;

async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work();
    } catch (error) {
      const busy = error instanceof Superseded || BUSY.has((error as { code?: string }).code ?? '');
      if (!busy || tries === TRIES) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}
