import { connect } from '@nats-io/transport-node';
import { expect, onTestFinished, test } from 'vitest';
import { ensureStreams } from '../../src/log/streams.ts';
import { names } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { Patience } from '../../src/platform/patience.ts';
import { startTestCluster } from '../support/servers.ts';

/** Longer than a test may take. */
const NEVER_MS = 600_000;

test('more copies than a cluster has servers are refused, and as many as it has are made while one of them is away', async () => {
  const cluster = await startTestCluster();
  onTestFinished(() => cluster.stop());
  const nc = await connect({ servers: [...cluster.urls], maxReconnectAttempts: -1, reconnectTimeWait: 100 });
  onTestFinished(() => nc.close());
  const told: string[] = [];
  const ensure = (replicas: number) =>
    ensureStreams({
      nc,
      names: names('copies_'),
      config: { ...loadConfig({}), replicas },
      logger: silentLogger,
      patience: new Patience({ forMs: NEVER_MS, onFailure: ({ message }) => told.push(message) }),
    });
  await expect(ensure(5)).rejects.toMatchObject({
    code: 'config_invalid',
    message: expect.stringContaining('TASKLEDGER_REPLICAS is invalid: 5 copies need as many servers'),
  });
  expect(told).toContainEqual(expect.stringContaining('lower TASKLEDGER_REPLICAS or add servers'));

  await cluster.nodes[2]?.stop();
  await ensure(3);
});
