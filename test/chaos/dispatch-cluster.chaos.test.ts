import { jetstreamManager } from '@nats-io/jetstream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createDispatcher, type Dispatcher } from '../../src/dispatch/dispatcher.ts';
import { createLogger } from '../../src/observe/log.ts';
import { eventually } from '../support/eventually.ts';
import { startTestCluster, type TestCluster } from '../support/servers.ts';
import { openTaskWorld, type TaskWorld } from '../support/task-world.ts';

const logger = createLogger({ logLevel: 'error' });

/** Two dispatchers on three servers with three replicas: what a broker node's death does to dispatching. */
describe('dispatch on a cluster', () => {
  let cluster: TestCluster;
  let world: TaskWorld;
  const dispatchers: Dispatcher[] = [];

  beforeAll(async () => {
    cluster = await startTestCluster();
    world = await openTaskWorld('chaos_', { replicas: 3, leaderLeaseMs: 3_000 }, cluster.urls);
    for (let n = 0; n < 2; n++) {
      const { nc, log, clock } = await world.connect();
      const { names, config } = world;
      const dispatcher = createDispatcher({ nc, log, names, config, clock, logger });
      await dispatcher.start();
      dispatchers.push(dispatcher);
    }
    await world.work(({ attempt, id }) => (attempt === 1 && id < '2' ? 'fail' : 'complete'));
  });

  afterAll(async () => {
    for (const dispatcher of dispatchers) await dispatcher.stop();
    await world?.stop();
    await cluster?.stop();
  });

  it('finishes every task once while the server dies that leads the log', async () => {
    const half = 300;
    const policy = { backoff: { kind: 'fixed', baseMs: 400 } } as const;
    const first = Array.from({ length: half }, () => world.ingest({ policy }));
    await eventually(() => expect(world.count('COMPLETED')).toBeGreaterThan(20), { timeoutMs: 60_000 });

    const jsm = await jetstreamManager(world.nc);
    const { cluster: raft } = await jsm.streams.info(world.names.streams.tasks);
    const victim = cluster.nodes.find(({ name }) => name === raft?.leader);
    expect(victim).toBeDefined();
    await victim?.kill('SIGKILL');
    const second = Array.from({ length: half }, () => world.ingest({ policy }));

    const ids = await Promise.all([...first, ...second]);
    await eventually(() => expect(world.count('COMPLETED')).toBe(2 * half), { timeoutMs: 120_000 });
    for (const id of ids) {
      const kinds = world.kindsOf(id);
      expect(kinds.filter((kind) => kind === 'COMPLETED')).toHaveLength(1);
      expect(kinds.filter((kind) => kind === 'QUEUED')).toHaveLength(
        kinds.filter((kind) => kind === 'CLAIMED').length,
      );
    }
    await eventually(() => expect(dispatchers.filter((each) => each.isLeader())).toHaveLength(1));
  });
});
