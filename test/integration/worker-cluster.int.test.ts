import { randomUUID } from 'node:crypto';
import { connect } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWorker } from '../../src/index.ts';
import { execute } from '../../src/log/handle.ts';
import { openLog } from '../../src/log/open.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { names } from '../../src/log/subjects.ts';
import { createLogger, silentLogger } from '../../src/observe/log.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { eventually } from '../support/eventually.ts';
import { startTestCluster, type TestCluster } from '../support/servers.ts';

const config = { ...loadConfig({}), replicas: 3 };
const ours = names('wc_');
const TASKS = 400;

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startTestCluster();
});
afterAll(() => cluster.stop());

test('consumer and stream leaders step down under work: it goes on within seconds, and nothing is lost or done twice', async () => {
  const nc = await connect({ servers: [...cluster.urls], maxReconnectAttempts: -1 });
  await ensureStreams({ nc, names: ours, config, logger: silentLogger });
  const log = await openLog({ nc, names: ours, config, logger: silentLogger });
  const consumer = ours.workConsumer('transcode');
  const meta = () => ({
    eventId: randomUUID(),
    at: Date.now(),
    actor: { kind: 'intake' as const, id: 'test' },
  });

  const enqueue = async (payload: number): Promise<string> => {
    const taskId = randomUUID();
    const born = { taskId, tenant: 'acme', type: 'transcode', payload, priority: 2 };
    const ingested = await execute(log, { tenant: 'acme', taskId, known: 'none' }, () => ({
      ...meta(),
      kind: 'ingest',
      ...born,
    }));
    if (!ingested.ok) throw ingested.error;
    const queued = await execute(log, { tenant: 'acme', taskId, known: ingested.value.state }, () => ({
      ...meta(),
      kind: 'queue',
      inlinePayload: true,
    }));
    if (!queued.ok) throw queued.error;
    return taskId;
  };

  const completedAt: number[] = [];
  const runs = new Map<number, number>();
  const worker = createWorker({
    nats: cluster.urls.join(','),
    prefix: 'wc_',
    concurrency: 8,
    logger: createLogger({ logLevel: 'error' }),
    types: {
      transcode: ({ payload }) => {
        runs.set(payload as number, (runs.get(payload as number) ?? 0) + 1);
        return payload;
      },
    },
    hooks: { completed: () => void completedAt.push(Date.now()) },
  });
  await worker.start();
  const ids: string[] = [];
  for (let n = 0; n < TASKS; n++) {
    ids.push(await enqueue(n));
    if (n === 100) await nc.request(`$JS.API.CONSUMER.LEADER.STEPDOWN.${ours.streams.tasks}.${consumer}`);
    if (n === 250) await nc.request(`$JS.API.STREAM.LEADER.STEPDOWN.${ours.streams.tasks}`);
  }
  await eventually(() => worker.stats().completed === TASKS, { timeoutMs: 40_000 });
  const gaps = completedAt.slice(1).map((at, i) => at - (completedAt[i] ?? at));
  expect(Math.max(...gaps)).toBeLessThan(6_000);
  expect(runs.size).toBe(TASKS);
  expect([...runs.values()].every((count) => count === 1)).toBe(true);
  for (const id of ids) {
    const kinds = (await log.readTask('acme', id)).map(({ event }) => event.kind);
    expect(kinds).toEqual(['INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'COMPLETED']);
  }
  await worker.stop();
  await log.close();
  await nc.close();
});
