import { randomUUID } from 'node:crypto';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWorker } from '../../src/index.ts';
import { execute } from '../../src/log/handle.ts';
import { type OpenedLog, openLog } from '../../src/log/open.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { names } from '../../src/log/subjects.ts';
import { createLogger, silentLogger } from '../../src/observe/log.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { eventually } from '../support/eventually.ts';
import { startTestCluster, type TestCluster } from '../support/servers.ts';

const config = { ...loadConfig({}), replicas: 3 };
const PREFIX = 'wc_';
const ours = names(PREFIX);
const TENANT = 'acme';
/** Each disturbance has a type of its own. */
const stepDown = 'transcode';
const nodeDeath = 'thumbnail';

/** A lease and a retry of what was in flight; how fast it really goes on is a matter of measuring, not of this test. */
const LONGEST_PAUSE_MS = 60_000;

let cluster: TestCluster;
let nc: NatsConnection;
let log: OpenedLog;
beforeAll(async () => {
  cluster = await startTestCluster();
  nc = await connect({ servers: [...cluster.urls], maxReconnectAttempts: -1, reconnectTimeWait: 100 });
  await ensureStreams({ nc, names: ours, config, logger: silentLogger });
  log = await openLog({ nc, names: ours, config, logger: silentLogger });
});
afterAll(async () => {
  await log?.close();
  await nc?.close();
  await cluster?.stop();
});

async function enqueue(type: string, payload: number): Promise<string> {
  const taskId = randomUUID();
  const meta = () => ({
    eventId: randomUUID(),
    at: Date.now(),
    actor: { kind: 'intake' as const, id: 'test' },
  });
  const born = { taskId, tenant: TENANT, type, payload, priority: 2 };
  const ingested = await execute(log, { tenant: TENANT, taskId, known: 'none' }, () => ({
    ...meta(),
    kind: 'ingest',
    ...born,
  }));
  if (!ingested.ok) throw ingested.error;
  const queued = await execute(log, { tenant: TENANT, taskId, known: ingested.value.state }, () => ({
    ...meta(),
    kind: 'queue',
    inlinePayload: true,
  }));
  if (!queued.ok) throw queued.error;
  return taskId;
}

/**
 * Lets a worker run `count` tasks that arrive one after the other, and calls `disturb` before each. Answers the longest
 * pause between two completions in ms, after checking that every task was completed exactly once.
 */
async function longestPause(
  type: string,
  count: number,
  disturb: (n: number) => Promise<unknown> | undefined,
) {
  const completedAt: number[] = [];
  const worker = createWorker({
    nats: cluster.urls.join(','),
    prefix: PREFIX,
    concurrency: 8,
    logger: createLogger({ logLevel: 'error' }),
    types: { [type]: ({ payload }) => payload },
    hooks: { completed: () => void completedAt.push(Date.now()) },
  });
  await worker.start();
  const ids: string[] = [];
  for (let n = 0; n < count; n++) {
    await disturb(n);
    ids.push(await enqueue(type, n));
  }
  await eventually(() => worker.stats().completed >= count, { timeoutMs: 120_000 });
  for (const id of ids) {
    const kinds = (await log.readTask(TENANT, id)).map(({ event }) => event.kind);
    expect(kinds).toEqual(['INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'COMPLETED']);
  }
  await worker.stop();
  return Math.max(...completedAt.slice(1).map((at, i) => at - (completedAt[i] ?? at)));
}

test('consumer and stream leaders step down under work: it goes on by itself, and nothing is lost or done twice', async () => {
  const { tasks } = ours.streams;
  const pause = await longestPause(stepDown, 400, (n) => {
    if (n === 100)
      return nc.request(`$JS.API.CONSUMER.LEADER.STEPDOWN.${tasks}.${ours.workConsumer(stepDown)}`);
    if (n === 250) return nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${tasks}`);
    return undefined;
  });
  expect(pause).toBeLessThan(LONGEST_PAUSE_MS);
}, 180_000);

/** Kills the node that leads the work consumer. */
async function killLeader(): Promise<void> {
  const jsm = await jetstreamManager(nc);
  const { cluster: raft } = await jsm.consumers.info(ours.streams.tasks, ours.workConsumer(nodeDeath));
  const leader = cluster.nodes.find(({ name }) => name === raft?.leader);
  if (leader === undefined) throw new Error(`no node leads: ${JSON.stringify(raft)}`);
  await leader.kill();
}

test('the node that leads the work is killed: it goes on by itself, and nothing is lost or done twice', async () => {
  const pause = await longestPause(nodeDeath, 200, (n) => (n === 80 ? killLeader() : undefined));
  expect(pause).toBeLessThan(LONGEST_PAUSE_MS);
}, 180_000);
