import pg from 'pg';
import { TaskledgerError } from '../domain/errors.ts';
import type { Config } from './config.ts';

export type PostgresSettings = Pick<
  Config,
  'databaseUrl' | 'databasePoolSize' | 'databaseTimeoutMs' | 'databaseConnectTimeoutMs'
>;

/**
 * A pool of connections that survives its server: a lost connection leaves the pool and the next query makes a new one.
 * Connecting is lazy, so a pool can be made while Postgres is down. The caller ends it.
 * `name` shows up as application_name in pg_stat_activity.
 */
export function createPool(settings: PostgresSettings, name: string): pg.Pool {
  const pool = new pg.Pool({
    connectionString: settings.databaseUrl,
    application_name: name,
    max: settings.databasePoolSize,
    statement_timeout: settings.databaseTimeoutMs,
    // The client gives up a little later than the server, for when no answer comes at all.
    query_timeout: settings.databaseTimeoutMs + 2_000,
    connectionTimeoutMillis: settings.databaseConnectTimeoutMs,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
  });
  // An idle connection that breaks emits here; unheard, it would end the process. Whoever queries next sees the error.
  pool.on('error', () => undefined);
  // The same for a connection that breaks while it is lent out between two queries.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return pool;
}

/**
 * Closes the connections that nobody uses at the moment. After a cut they may look alive and never answer: whoever took
 * one then would wait in vain.
 */
export function closeIdle(pool: pg.Pool): void {
  for (let left = pool.idleCount; left > 0; left--)
    pool.connect().then(
      (client) => client.release(true),
      () => undefined,
    );
}

/**
 * SQLSTATE classes that say nothing about the statement's data: connection, transaction state, authorization, missing
 * database, missing schema, rollback, missing table (migrations), resources, locks, operator (shutdown, timeouts), system, internal.
 */
const NOT_ABOUT_DATA = new Set([
  '08',
  '25',
  '28',
  '3D',
  '3F',
  '40',
  '42',
  '53',
  '55',
  '57',
  '58',
  'F0',
  'XX',
]);

/**
 * Whether a failure is due to the values of a statement, so that the same statement would fail again for ever.
 * Everything else (the network, the server, locks) may pass.
 */
export function isDataError(error: unknown): boolean {
  if (error instanceof pg.DatabaseError && typeof error.code === 'string') {
    return !NOT_ABOUT_DATA.has(error.code.slice(0, 2));
  }
  return error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError;
}

/** `undefined_table` and `invalid_schema_name`. */
const NO_TABLES = new Set(['42P01', '3F000']);

/** Whether a table or its schema is not there, as in a database that was emptied or replaced. */
export const areTablesGone = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && NO_TABLES.has(error.code ?? '');

/** A short reason for people: what Postgres said, or what the socket did. */
export function postgresReason(error: unknown): string {
  if (error instanceof AggregateError && error.errors.length > 0) return postgresReason(error.errors[0]);
  if (!(error instanceof Error)) return String(error);
  const code = (error as { code?: unknown }).code;
  return typeof code === 'string' && !error.message.includes(code)
    ? `${error.message} (${code})`
    : error.message;
}

/** The error that callers of a read model get while Postgres cannot answer, with how far the read models are behind. */
export function readModelUnavailable(
  error: unknown,
  lag?: { readonly lagEvents: number; readonly lagSeconds: number },
): TaskledgerError {
  const reason = postgresReason(error);
  if (lag === undefined) return new TaskledgerError('read_model_unavailable', { reason }, { cause: error });
  const { lagEvents, lagSeconds } = lag;
  const behind = `${reason}; they are ${lagEvents} events and ${lagSeconds} s behind the log`;
  return new TaskledgerError(
    'read_model_unavailable',
    { reason: behind, lagEvents, lagSeconds },
    { cause: error },
  );
}
