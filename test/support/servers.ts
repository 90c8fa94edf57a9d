import { createHash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { connect, type NatsConnection, type NodeConnectionOptions } from '@nats-io/transport-node';
import pg from 'pg';
import { inject, type RunnerTestSuite, TestRunner } from 'vitest';
import { type NatsCluster, startNatsCluster } from '../../src/platform/embedded/nats-cluster.ts';
import { findTestNatsServer } from './local-backend.ts';

/** URL of the NATS server (R1) that the whole run shares. */
export const testNatsUrl = (): string => inject('natsUrl');

/** A connection to the shared server; the caller closes it. */
export const connectTestNats = (options: NodeConnectionOptions = {}): Promise<NatsConnection> =>
  connect({ servers: testNatsUrl(), ...options });

/**
 * A prefix for streams, buckets and subjects, `[a-z0-9]+_`: the same for every call from one file, different for
 * every file and every run. Call it with `import.meta.url`.
 */
export const testNamespace = (fileUrl: string): string => `${slugOf(fileUrl)}${hashOf(fileUrl)}_`;

export interface TestDatabase {
  readonly url: string;
  readonly name: string;
  /** Removes the database, unless a test of the file has failed: then it is kept for a look (with TEST_KEEP_DATA=1, or on servers of one's own). */
  readonly drop: () => Promise<void>;
}

let databases = 0;

/** An empty database of its own for a test file. Call it with `import.meta.url`. */
export async function createTestDatabase(fileUrl: string): Promise<TestDatabase> {
  databases += 1;
  const { file } = TestRunner.getCurrentSuite();
  const name = `t_${slugOf(fileUrl)}_${hashOf(fileUrl)}_${process.pid}_${databases}`;
  await asSuperuser((client) => client.query(`create database ${client.escapeIdentifier(name)}`));
  const url = new URL(inject('databaseUrl'));
  url.pathname = `/${name}`;
  return {
    url: url.href,
    name,
    drop: async () => {
      if (hasFailed(file)) {
        console.log(`[servers] database ${name} is kept: ${basename(fileURLToPath(fileUrl))} failed`);
        return;
      }
      await asSuperuser((client) =>
        client.query(`drop database if exists ${client.escapeIdentifier(name)} with (force)`),
      );
    },
  };
}

export interface TestCluster extends NatsCluster {
  /** Stops the nodes and removes their data. */
  stop(): Promise<void>;
}

/** A NATS cluster of its own for a test file, always as local processes: the caller stops and kills nodes as it likes. */
export async function startTestCluster({
  size = 3,
  syncInterval,
}: {
  size?: number;
  syncInterval?: string;
} = {}): Promise<TestCluster> {
  const { bin } = await findTestNatsServer(() => {});
  const dir = await mkdtemp(join(tmpdir(), `taskledger-cluster-${inject('runId')}-`));
  const cluster = await startNatsCluster({
    bin,
    dir,
    size,
    ...(syncInterval !== undefined && { syncInterval }),
  });
  return {
    ...cluster,
    stop: async () => {
      await cluster.stop();
      if (!process.env['TEST_KEEP_DATA']) await rm(dir, { recursive: true, force: true });
    },
  };
}

async function asSuperuser(work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: inject('databaseUrl') });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

const hasFailed = (suite: Readonly<RunnerTestSuite>): boolean =>
  suite.result?.state === 'fail' ||
  suite.tasks.some((task) => (task.type === 'suite' ? hasFailed(task) : task.result?.state === 'fail'));

/** The start of the file's name, letters and digits only. */
const slugOf = (fileUrl: string): string =>
  basename(fileURLToPath(fileUrl))
    .toLowerCase()
    .replace(/\..*$|[^a-z0-9]/g, '')
    .slice(0, 12);

const hashOf = (fileUrl: string): string =>
  createHash('sha256')
    .update(`${inject('runId')} ${fileUrl}`)
    .digest('hex')
    .slice(0, 6);
