import { jetstreamManager } from '@nats-io/jetstream';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { names as namesOf } from '../../src/log/subjects.ts';
import { connectNats } from '../../src/platform/nats.ts';
import { eventually } from '../support/eventually.ts';
import { contradictions, type Installation, startInstallation, TYPE } from '../support/installation.ts';
import {
  createTestDatabase,
  startTestCluster,
  type TestCluster,
  type TestDatabase,
} from '../support/servers.ts';

const PER_SECOND = 40;
/** Usually it is less than a second. */
const IDLE_MS = 5_000;

let cluster: TestCluster;
let database: TestDatabase;
let installation: Installation;
let end: () => Promise<void>;

beforeAll(async () => {
  [cluster, database] = await Promise.all([startTestCluster(), createTestDatabase(import.meta.url)]);
  installation = await startInstallation({
    NATS_URL: cluster.urls.join(','),
    DATABASE_URL: database.url,
    TASKLEDGER_REPLICAS: '3',
    TASKLEDGER_LEADER_LEASE_MS: '3000',
  });
  end = installation.load(PER_SECOND);
});
afterAll(async () => {
  await installation?.stop();
  await cluster?.stop();
  await database?.drop();
});

/** Resolves with how long it took from now until tasks completed again that were not submitted before. */
async function untilWorkFlows(): Promise<number> {
  const since = performance.now();
  const before = installation.count('COMPLETED');
  await eventually(() => installation.count('COMPLETED') > before + 5, { timeoutMs: 60_000 });
  return performance.now() - since;
}

async function leaderOfTheLog() {
  const nc = await connectNats(installation.config, 'leader look-up');
  try {
    const names = namesOf(installation.config.prefix);
    const jsm = await jetstreamManager(nc);
    const { cluster: raft } = await jsm.streams.info(names.streams.tasks);
    return {
      leader: raft?.leader,
      stepDown: () =>
        nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${names.streams.tasks}`, '', { timeout: 5_000 }),
      close: () => nc.close(),
    };
  } catch (error) {
    await nc.close();
    throw error;
  }
}

/**
 * Resolves with how long it took from now until the log, the consumer of its work and the dispatchers' lease have a leader
 * other than `dead`. A server waits 4 to 9 s for a silent leader before it stands for election, and again when votes are
 * split: constants of the server.
 */
async function untilElected(dead?: string): Promise<number> {
  const since = performance.now();
  const nc = await connectNats(installation.config, 'election look-up');
  try {
    const names = namesOf(installation.config.prefix);
    const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: 500 });
    await eventually(
      async () => {
        const log = await jsm.streams.info(names.streams.tasks);
        const work = await jsm.consumers.info(names.streams.tasks, names.workConsumer(TYPE));
        const lease = await jsm.streams.info(`KV_${names.buckets.leaders}`);
        for (const { cluster: raft } of [log, work, lease])
          expect([undefined, '', dead]).not.toContain(raft?.leader);
      },
      { timeoutMs: 60_000 },
    );
    return performance.now() - since;
  } finally {
    await nc.close();
  }
}

/** How long workers were idle from now on, and how much of it was the servers' elections. `dead`: leads nothing any more. */
async function idleness(dead?: string): Promise<{ idleMs: number; electedMs: number }> {
  const [idleMs, electedMs] = await Promise.all([untilWorkFlows(), untilElected(dead)]);
  return { idleMs, electedMs };
}

/** What is promised of workers once the servers are back: the log, its work and the dispatchers' lease have leaders. */
function expectPromptness(fault: string, { idleMs, electedMs }: Awaited<ReturnType<typeof idleness>>): void {
  console.log(JSON.stringify({ fault, idleMs, electedMs }));
  expect(idleMs - electedMs).toBeLessThan(IDLE_MS);
}

test('work goes on when the leader of the log is told to step down', async () => {
  await eventually(() => installation.count('COMPLETED') > 20, { timeoutMs: 60_000 });
  const log = await leaderOfTheLog();
  await log.stepDown();
  await log.close();
  expectPromptness('leader steps down', await idleness());
});

test('work goes on when the server dies that leads the log, and when it comes back', async () => {
  const log = await leaderOfTheLog();
  await log.close();
  const victim = cluster.nodes.find(({ name }) => name === log.leader);
  expect(victim).toBeDefined();
  await victim?.kill('SIGKILL');
  expectPromptness('leader killed', await idleness(victim?.name));
  await victim?.restart();
  await cluster.whenReady();
  expectPromptness('leader back', await idleness());
});

test('work goes on when all servers were stopped and are back', async () => {
  await Promise.all(cluster.nodes.map((node) => node.kill('SIGKILL')));
  const gap = await Promise.all(Array.from({ length: 5 }, () => installation.submit()));
  expect(gap.filter(({ kind }) => kind === 'accepted')).toEqual([]);
  await Promise.all(cluster.nodes.map((node) => node.restart()));
  await cluster.whenReady();
  expectPromptness('all servers restarted', await idleness());
});

test('what clients were told is what the log holds', async () => {
  await end();
  await eventually(
    () => {
      expect(installation.count('INGESTED')).toBeGreaterThan(100);
      expect(installation.count('COMPLETED')).toBe(installation.count('INGESTED'));
      expect(contradictions(installation)).toEqual([]);
    },
    { timeoutMs: 90_000, intervalMs: 500 },
  );
  const kinds = [...installation.told.values()].map(({ kind }) => kind);
  console.log(
    JSON.stringify({
      submissions: kinds.length,
      accepted: kinds.filter((kind) => kind === 'accepted').length,
    }),
  );
  const { body } = await eventually(
    async () => {
      const answer = await installation.get('/readyz');
      return answer.status === 200 && answer.body['lag'] === 0 ? answer : false;
    },
    { timeoutMs: 60_000 },
  );
  expect(body).toMatchObject({ ready: true });
});
