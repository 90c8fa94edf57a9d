import { appendFile, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { afterEach, expect, test } from 'vitest';
import { backUp, streamsInOrder } from '../../src/backup/backup.ts';
import { restore } from '../../src/backup/restore.ts';
import { createDispatcher } from '../../src/dispatch/dispatcher.ts';
import { createWorker } from '../../src/index.ts';
import { createLogReader } from '../../src/log/reader.ts';
import { createLogger, silentLogger } from '../../src/observe/log.ts';
import { openRegistry } from '../../src/registry/registry.ts';
import { eventually } from '../support/eventually.ts';
import { testNamespace, testNatsUrl } from '../support/servers.ts';
import { openTaskWorld, type TaskWorld, TYPE } from '../support/task-world.ts';

const logger = createLogger({ logLevel: 'silent' });
const closers: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const prefix = testNamespace(import.meta.url);
const SETTINGS = { ackWaitMs: 2_000, leaderLeaseMs: 1_500 };

/** Dispatcher and worker on a world; `stop` ends all three. */
async function startWork(world: TaskWorld, handler: () => Promise<null>) {
  const { nc, log, clock } = await world.connect();
  const dispatcher = createDispatcher({
    nc,
    log,
    names: world.names,
    config: world.config,
    clock,
    logger,
  });
  await dispatcher.start();
  const worker = createWorker({
    nats: testNatsUrl(),
    prefix,
    logger,
    concurrency: 5,
    shutdownGraceMs: 100,
    types: { [TYPE]: handler },
  });
  await worker.start();
  return {
    async stop() {
      await worker.stop();
      await dispatcher.stop();
      await world.stop();
    },
  };
}

test('a backup taken while tasks run is restored on empty servers, and every task still finishes', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'taskledger-backup-'));
  closers.push(() => rm(dir, { recursive: true, force: true }));
  const before = await openTaskWorld(prefix, SETTINGS);
  const registry = openRegistry({ nc: before.nc, names: before.names, logger: silentLogger });
  await registry.start();
  await registry.tenants.put({ name: 'acme', createdAt: '2026-01-01T00:00:00.000Z' });
  await registry.stop();
  let finished = 0;
  const work = await startWork(before, async () => {
    // Ten end well; the attempts after them hang until the installation is gone.
    if (finished >= 10) return new Promise<never>(() => {});
    finished += 1;
    return null;
  });
  const ids: string[] = [];
  for (let n = 0; n < 30; n += 1) ids.push(await before.ingest());
  for (let n = 0; n < 3; n += 1) ids.push(await before.ingest({ runAt: Date.now() + 4_000 }));
  await eventually(() => before.count('PROCESSING') === 5 && before.count('COMPLETED') === 10);

  const target = join(dir, 'b1');
  const manifest = await backUp({ nc: before.nc, names: before.names, dir: target, now: Date.now() });
  const kept = new Map(manifest.streams.map((stream) => [stream.name, stream]));
  const { tasks, history } = before.names.streams;
  const lastSeq = kept.get(tasks)?.lastSeq ?? 0;
  expect(lastSeq).toBeGreaterThan(33 + 10 * 4);
  const { created } = await (await jetstreamManager(before.nc)).streams.info(tasks);
  const whole = await eventsUpTo(before, lastSeq);
  await work.stop();

  const { nc, names } = await openEmpty();
  await expect(backUp({ nc, names, dir: target, now: 0 })).rejects.toMatchObject({
    code: 'backup_folder_not_empty',
  });
  const parts = { nc, names, config: { replicas: 1 }, dir: target };
  await restore(parts);
  await expect(restore(parts)).rejects.toMatchObject({ code: 'restore_not_empty' });

  const after = await openTaskWorld(prefix, SETTINGS);
  closers.push(() => after.stop());
  expect(await eventsUpTo(after, lastSeq)).toEqual(whole);
  const second = await startWork(after, async () => null);
  closers.push(() => second.stop());
  await eventually(() => ids.every((id) => after.kindsOf(id).at(-1) === 'COMPLETED'), { timeoutMs: 60_000 });
  for (const id of ids) expect(after.kindsOf(id).filter((kind) => kind === 'COMPLETED')).toHaveLength(1);
  const manager = await jetstreamManager(after.nc, { checkAPI: false });
  expect((await manager.streams.info(tasks)).created).not.toBe(created);
  await eventually(async () => {
    const [log, copy] = await Promise.all([manager.streams.info(tasks), manager.streams.info(history)]);
    return log.state.last_seq > lastSeq && copy.state.messages === log.state.last_seq;
  });
  const known = openRegistry({ nc: after.nc, names, logger: silentLogger });
  await known.start();
  expect(known.tenants.get('acme')?.createdAt).toBe('2026-01-01T00:00:00.000Z');
  await known.stop();
});

test('a backup that has been changed is refused before anything is made', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'taskledger-backup-'));
  closers.push(() => rm(dir, { recursive: true, force: true }));
  const world = await openTaskWorld(prefix, SETTINGS);
  await world.ingest();
  const target = join(dir, 'b1');
  await backUp({ nc: world.nc, names: world.names, dir: target, now: 0 });
  await world.stop();
  const { nc, names } = await openEmpty();
  const file = join(target, `${names.streams.timers}.snapshot`);
  expect((await readFile(file)).length).toBeGreaterThan(0);
  await appendFile(file, 'x');
  const parts = { nc, names, config: { replicas: 1 }, dir: target };
  await expect(restore(parts)).rejects.toMatchObject({ code: 'backup_unreadable' });
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  await expect(jsm.streams.info(names.streams.tasks)).rejects.toThrow('stream not found');
  await expect(restore({ ...parts, dir })).rejects.toMatchObject({ code: 'backup_unreadable' });
});

/** A connection to the server after everything of the installation has been removed from it. */
async function openEmpty() {
  const world = await openTaskWorld(prefix, SETTINGS);
  const { nc } = await world.connect();
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const { leaders, workers } = world.names.buckets;
  const rest = [leaders, workers].map((bucket) => `KV_${bucket}`);
  for (const stream of [...streamsInOrder(world.names), ...rest])
    await jsm.streams.delete(stream).catch(() => undefined);
  closers.push(() => world.stop());
  return { nc, names: world.names };
}

async function eventsUpTo({ nc, names }: TaskWorld, lastSeq: number): Promise<unknown[]> {
  const events: unknown[] = [];
  const reader = createLogReader(
    { nc, names, logger: silentLogger },
    {
      fromSeq: 1,
      maxBatch: 500,
      gatherMs: 0,
      onBatch: (batch) => void events.push(...batch.events.filter(({ seq }) => seq <= lastSeq)),
    },
  );
  await reader.start();
  await reader.whenReached(lastSeq);
  await reader.stop();
  return events;
}
