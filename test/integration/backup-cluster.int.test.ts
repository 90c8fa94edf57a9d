import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { afterEach, expect, test } from 'vitest';
import { backUp } from '../../src/backup/backup.ts';
import { restore } from '../../src/backup/restore.ts';
import { createDispatcher } from '../../src/dispatch/dispatcher.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { eventually } from '../support/eventually.ts';
import { connectTestNats, startTestCluster, type TestCluster } from '../support/servers.ts';
import { type AttemptOutcome, openTaskWorld } from '../support/task-world.ts';

const PREFIX = 'bc_';
const SETTINGS = { replicas: 3, ackWaitMs: 2_000, leaderLeaseMs: 1_500 };
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

async function startCluster(): Promise<TestCluster> {
  const cluster = await startTestCluster();
  closers.push(() => cluster.stop());
  return cluster;
}

/** A world with a dispatcher and a stand-in worker; `stop` ends all of it. */
async function startWork({ urls }: TestCluster, outcomeOf: () => AttemptOutcome) {
  const world = await openTaskWorld(PREFIX, SETTINGS, urls);
  const { nc, log, clock } = await world.connect();
  const { names, config } = world;
  const dispatcher = createDispatcher({ nc, log, names, config, clock, logger: silentLogger });
  await dispatcher.start();
  await world.work(outcomeOf);
  let stopped: Promise<void> | undefined;
  const stop = () => (stopped ??= dispatcher.stop().then(() => world.stop()));
  closers.push(stop);
  return { ...world, stop };
}

test('a backup of three copies with tasks in flight is restored as three copies on another cluster, and every task ends once', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'taskledger-backup-'));
  closers.push(() => rm(dir, { recursive: true, force: true }));
  let ended = 0;
  const cluster = await startCluster();
  const before = await startWork(cluster, () => (ended++ < 10 ? 'complete' : 'hold'));
  const ids: string[] = [];
  for (let n = 0; n < 30; n += 1) ids.push(await before.ingest());
  ids.push(await before.ingest({ runAt: Date.now() + 600_000 }));
  await eventually(() => before.count('COMPLETED') === 10 && before.count('CLAIMED') > 0, {
    timeoutMs: 30_000,
  });
  const { streams } = await backUp({ nc: before.nc, names: before.names, dir, now: Date.now() });
  const lastSeq = streams.find(({ name }) => name === before.names.streams.tasks)?.lastSeq ?? 0;
  const kept = ids.map((id) => before.book.get(id)?.filter(({ seq }) => seq <= lastSeq));
  await before.stop();
  await cluster.stop();

  const other = await startCluster();
  const nc = await connectTestNats({ servers: [...other.urls] });
  closers.push(() => nc.close());
  const names = namesOf(PREFIX);
  await restore({ nc, names, config: SETTINGS, dir });
  const manager = await jetstreamManager(nc);
  for (const { name } of streams)
    expect((await manager.streams.info(name)).config.num_replicas, name).toBe(3);

  const after = await startWork(other, () => 'complete');
  const delayed = ids.pop() ?? '';
  await eventually(() => ids.every((id) => after.kindsOf(id).at(-1) === 'COMPLETED'), { timeoutMs: 60_000 });
  for (const id of ids) expect(after.kindsOf(id).filter((kind) => kind === 'COMPLETED')).toHaveLength(1);
  expect(after.kindsOf(delayed)).toEqual(['INGESTED']);
  expect([...ids, delayed].map((id) => after.book.get(id)?.filter(({ seq }) => seq <= lastSeq))).toEqual(
    kept,
  );
}, 180_000);
