import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { names } from '../../src/log/subjects.ts';
import { type ChildServer, launchServer } from '../../src/platform/embedded/child-server.ts';
import { findNatsServer } from '../../src/platform/embedded/nats-binary.ts';
import { startNatsCluster } from '../../src/platform/embedded/nats-cluster.ts';
import { startNatsServer } from '../../src/platform/embedded/nats-process.ts';
import { freePort } from '../../src/platform/embedded/ports.ts';
import { type PostgresServer, startPostgres } from '../../src/platform/embedded/postgres-process.ts';
import { productMain } from './built.ts';
import type { Parts } from './meter.ts';
import { type Positions, watchPositions } from './positions.ts';
import { prepareStand } from './prepare.ts';

/**
 * Process layout of the product: one process for each entry, playing the roles that `+` joins.
 * `all` is one process; `api,dispatcher,projector` is three; `api+dispatcher,projector` is two.
 */
export type Layout = readonly string[];
export const parseLayout = (text: string): Layout => text.split(',').map((part) => part.trim());

export interface StandOptions {
  readonly layout: Layout;
  /** Arguments for Node, by part: a profiler, say. */
  nodeArgs?(part: string): readonly string[];
  /** Tenants to make; BENCH_TENANT alone by default. The API key is one of the first. */
  readonly tenants?: readonly string[];
  /** Settings of the product that differ from the defaults, as environment variables. */
  readonly settings?: Readonly<Record<string, string>>;
  readonly durability: Durability;
}

/** The product running on empty servers of its own. */
export interface Stand extends Positions {
  readonly natsUrl: string;
  readonly databaseUrl: string;
  readonly apiUrl: string;
  /** May do everything for the first tenant. */
  readonly apiKey: string;
  readonly parts: Parts;
  /** Brings Postgres where it is some time after a bulk load: everything projected, analyzed, checkpointed. */
  settle(): Promise<void>;
  stop(): Promise<void>;
}

export interface Stands {
  readonly natsVersion: string;
  readonly postgresVersion: string;
  open(options: StandOptions): Promise<Stand>;
  close(): Promise<void>;
}

const plays = (part: string, role: string): boolean => {
  const roles = part.split('+');
  return roles.includes(role) || roles.includes('all');
};

export const BENCH_TENANT = 'bench';
export const BENCH_TYPE = 'bench';

/** What the yardstick systems' Postgres gets too; everything else, fsync included, is the default. */
const POSTGRES_SETTINGS = { shared_buffers: '1GB' };
/** No limit may shape a figure that is not about limits. */
const UNLIMITED = { TASKLEDGER_MAX_BACKLOG: '100000000', TASKLEDGER_HTTP_RATE: '100000000' };
const CACHE_DIR = fileURLToPath(new URL('../../.taskledger/cache', import.meta.url));
/** Writing a CPU profile takes its time. */
const PROCESS_STOP_MS = 20_000;
/** Characters of the output of a process that ended by itself. */
const OUTPUT_SHOWN = 4_000;
const HEALTHY_WITHIN_MS = 30_000;

/** What the log stands on. */
export interface Durability {
  /** nats-servers on this machine, and copies of every stream. */
  readonly replicas: number;
  /** JetStream's `sync_interval`; the server's default (2 minutes) when absent. */
  readonly sync?: string | undefined;
}

/** Postgres is started once; every stand has a database of its own in it, and nats-servers with an empty store. */
export async function prepareStands(log: (line: string) => void): Promise<Stands> {
  const dir = await mkdtemp(join(tmpdir(), 'taskledger-bench-'));
  // As root, Postgres runs as another user, who must be able to enter.
  await chmod(dir, 0o755);
  const nats = await findNatsServer({
    cacheDir: CACHE_DIR,
    explicitBin: process.env['NATS_SERVER_BIN'],
    log,
  });
  const postgres = await startPostgres({ dir: join(dir, 'postgres'), settings: POSTGRES_SETTINGS, log });
  let stands = 0;
  return {
    natsVersion: nats.version,
    postgresVersion: await versionOf(postgres.url),
    async open(options) {
      stands += 1;
      const standDir = join(dir, `stand-${stands}`);
      const brokers = await startBrokers(nats.bin, join(standDir, 'nats'), options.durability);
      try {
        const database = await createDatabase(postgres.url, `bench_${stands}`);
        const replicated = { TASKLEDGER_REPLICAS: String(options.durability.replicas), ...options.settings };
        return await openStand(
          { ...options, settings: replicated },
          { brokers, postgres, ...database, dir: standDir },
          log,
        );
      } catch (error) {
        await brokers.stop();
        throw error;
      }
    },
    async close() {
      await postgres.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

interface Brokers {
  /** Comma separated. */
  readonly url: string;
  readonly pids: readonly number[];
  stop(): Promise<void>;
}

async function startBrokers(bin: string, dir: string, { replicas, sync }: Durability): Promise<Brokers> {
  const options = { bin, dir, ...(sync === undefined ? {} : { syncInterval: sync }) };
  if (replicas === 1) {
    const server = await startNatsServer(options);
    return { url: server.url, pids: [server.pid], stop: () => server.stop() };
  }
  const cluster = await startNatsCluster({ ...options, size: replicas });
  return {
    url: cluster.urls.join(','),
    pids: cluster.nodes.flatMap((node) => node.pid() ?? []),
    stop: () => cluster.stop(),
  };
}

interface Servers {
  readonly brokers: Brokers;
  readonly dir: string;
  readonly postgres: PostgresServer;
  readonly databaseUrl: string;
  drop(): Promise<void>;
}

async function openStand(
  options: StandOptions,
  servers: Servers,
  log: (line: string) => void,
): Promise<Stand> {
  const { brokers, postgres, databaseUrl } = servers;
  const tenants = options.tenants ?? [BENCH_TENANT];
  const { apiKey } = await prepareStand({
    natsUrl: brokers.url,
    databaseUrl,
    tenants,
    replicas: options.settings?.['TASKLEDGER_REPLICAS'] ?? '1',
  });
  const httpPort = await freePort();
  const env = {
    PATH: process.env['PATH'] ?? '',
    NATS_URL: brokers.url,
    DATABASE_URL: databaseUrl,
    TASKLEDGER_HTTP_PORT: String(httpPort),
    TASKLEDGER_LOG_LEVEL: 'warn',
    ...UNLIMITED,
    ...options.settings,
  };
  const apiUrl = `http://127.0.0.1:${httpPort}`;
  const processes: { readonly part: string; readonly server: ChildServer }[] = [];
  let stopping = false;
  const positions = await watchPositions({
    natsUrl: brokers.url,
    databaseUrl,
    names: names(''),
    projecting: options.layout.some((part) => plays(part, 'projector')),
  });
  const stop = async (): Promise<void> => {
    stopping = true;
    await Promise.all(processes.map((entry) => entry.server.stop()));
    await positions.close();
    await brokers.stop();
    await servers.drop();
    await rm(servers.dir, { recursive: true, force: true });
  };
  try {
    for (const part of options.layout) {
      const child = await launchServer({
        name: part,
        bin: process.execPath,
        args: [...(options.nodeArgs?.(part) ?? []), productMain, ...part.split('+')],
        dir: join(servers.dir, part),
        logFile: join(servers.dir, part, 'log'),
        env,
        stopSignal: 'SIGTERM',
        stopTimeoutMs: PROCESS_STOP_MS,
      });
      processes.push({ part, server: child });
      void child.exited.then(async ({ code, signal }) => {
        if (!stopping)
          log(
            `${part} ended by itself with ${signal ?? code}:\n${(await child.output()).slice(-OUTPUT_SHOWN)}`,
          );
      });
    }
    if (options.layout.some((part) => plays(part, 'api'))) await whenHealthy(apiUrl);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    ...positions,
    natsUrl: brokers.url,
    databaseUrl,
    apiUrl,
    apiKey,
    parts: {
      nats: brokers.pids,
      postgres: [postgres.pid],
      ...Object.fromEntries(processes.map((entry) => [entry.part, [entry.server.pid]])),
    },
    async settle() {
      await positions.whenProjected();
      await sql(databaseUrl, 'vacuum analyze');
      await sql(databaseUrl, 'checkpoint');
    },
    stop,
  };
}

async function createDatabase(
  serverUrl: string,
  name: string,
): Promise<{ databaseUrl: string; drop(): Promise<void> }> {
  await sql(serverUrl, `create database ${name}`);
  const url = new URL(serverUrl);
  url.pathname = `/${name}`;
  return {
    databaseUrl: url.href,
    drop: async () => void (await sql(serverUrl, `drop database ${name} with (force)`)),
  };
}

const versionOf = async (url: string): Promise<string> => {
  const [row] = await sql(url, 'show server_version');
  return String(row?.['server_version']);
};

async function sql(connectionString: string, text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

async function whenHealthy(apiUrl: string): Promise<void> {
  const deadline = Date.now() + HEALTHY_WITHIN_MS;
  for (;;) {
    const problem = await fetch(new URL('/healthz', apiUrl)).then(
      (response) => (response.ok ? undefined : `it answered ${response.status}`),
      (error: unknown) => String(error),
    );
    if (problem === undefined) return;
    if (Date.now() > deadline) throw new Error(`the API at ${apiUrl} is not healthy: ${problem}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
