import { spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { mkdtemp, readdir, readFile, rm, unlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Kvm } from '@nats-io/kv';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { execute } from '../../src/log/handle.ts';
import { readSpool } from '../../src/worker/spool/spool-format.ts';
import type { WorkerEntry } from '../../src/worker/worker-entry.ts';
import { eventually } from '../support/eventually.ts';
import { gate } from '../support/gate.ts';
import { needs } from '../support/needs.ts';
import { testNatsUrl } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { openWorkerRig, TENANT, TYPE, type WorkerRig } from '../support/worker-rig.ts';

/** Short, so that a lease is lost within a test. */
const ACK_WAIT_MS = 1_000;
const oneAttempt = ['INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'COMPLETED'];

let rig: WorkerRig;
let proxy: TcpProxy;
let nats: string;
let spoolDir: string;
beforeAll(async () => {
  rig = await openWorkerRig(import.meta.url, { ackWaitMs: ACK_WAIT_MS });
});
beforeEach(async () => {
  proxy = await startTcpProxy({ port: Number(new URL(testNatsUrl()).port) });
  nats = `nats://127.0.0.1:${proxy.port}`;
  spoolDir = await mkdtemp(join(tmpdir(), 'spool-'));
});
afterEach(async () => {
  proxy.pass();
  await rig.stopWorkers();
  await proxy.close();
  await rm(spoolDir, { recursive: true, force: true });
});
afterAll(() => rig.stop());

const spoolFiles = async () => (await readdir(spoolDir)).filter((name) => name.endsWith('.spool'));

/** Resolves with the outcomes on the disk when there are so many. */
const spooled = (count: number) =>
  eventually(async () => {
    const texts = await Promise.all(
      (await spoolFiles()).map((name) => readFile(join(spoolDir, name), 'utf8')),
    );
    const untold = texts.flatMap((text) => readSpool(text).untold);
    return untold.length === count ? untold : false;
  });

/** A worker behind the proxy that holds one task until it is told to finish. */
async function holdOne() {
  const started = gate();
  const finish = gate();
  const lost = gate<string>();
  const aborted: unknown[] = [];
  const worker = await rig.worker({
    nats,
    spoolDir,
    types: {
      [TYPE]: async ({ signal }) => {
        signal.addEventListener('abort', () => aborted.push(signal.reason));
        started.open();
        await finish.opened;
        return 'kept';
      },
    },
    hooks: { lost: ({ cause }) => lost.open(cause) },
  });
  const id = await rig.enqueue();
  await started.opened;
  return { worker, id, finish: finish.open, lost: lost.opened, aborted };
}

const DISK_BYTES = 1_048_576;

/** A file system of its own needs rights that not every machine gives. */
function canMount(): boolean {
  const dir = mkdtempSync(join(tmpdir(), 'mount-'));
  try {
    if (spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', dir]).status !== 0) return false;
    spawnSync('umount', [dir]);
    return true;
  } finally {
    rmdirSync(dir);
  }
}

const mounting = needs('the right to mount a file system', canMount());

async function mountSmallDisk(dir: string): Promise<void> {
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_BYTES}`, 'tmpfs', dir]);
  expect(mounted.status).toBe(0);
}

const leaseIsLong = () =>
  new Promise((resolve) => {
    setTimeout(resolve, 1.5 * ACK_WAIT_MS);
  });

test.each(['cut', 'blackhole', 'mute'] as const)(
  'a worker whose connection is %s finishes what it holds past its lease, keeps the outcome on the disk, and tells it afterwards',
  async (mode) => {
    const { worker, id, finish, aborted } = await holdOne();
    proxy[mode]();
    await leaseIsLong();
    finish();
    expect(await spooled(1)).toMatchObject([{ taskId: id, command: { kind: 'complete', result: 'kept' } }]);
    proxy.pass();
    expect((await rig.event(id, 'COMPLETED')).data.result).toBe('kept');
    expect(rig.kinds(id)).toEqual(oneAttempt);
    expect(aborted).toEqual([]);
    await rig.whenAllAcked();
    await eventually(async () => (await spoolFiles()).length === 0);
    await eventually(() => expect(worker.stats()).toMatchObject({ completed: 1, lost: 0, spooled: 0 }));
  },
);

test('over a slow link each outcome is stored once', async () => {
  const worker = await rig.worker({ nats, spoolDir, concurrency: 4, types: { [TYPE]: () => 'slow' } });
  proxy.pass({ delayMs: 1_200 });
  const ids = await Promise.all(Array.from({ length: 4 }, () => rig.enqueue()));
  for (const id of ids) await rig.event(id, 'COMPLETED', 60_000);
  proxy.pass();
  await rig.whenAllAcked();
  for (const id of ids) expect(rig.kinds(id).filter((kind) => kind === 'COMPLETED')).toHaveLength(1);
  await eventually(() => worker.stats().running === 0);
  await eventually(async () => expect(await spoolFiles()).toEqual([]));
});

test('a worker learns on its return that another has taken over', async () => {
  const { worker, id, finish, lost } = await holdOne();
  proxy.blackhole();
  finish();
  await spooled(1);
  await rig.worker({ types: { [TYPE]: () => 'other' } });
  await rig.event(id, 'RETRY_CLAIMED');
  await rig.requeue(id);
  expect((await rig.event(id, 'COMPLETED')).data.result).toBe('other');
  proxy.pass();
  expect(await lost).toBe('superseded');
  await eventually(() => expect(worker.stats()).toMatchObject({ completed: 0, lost: 1 }));
  await eventually(async () => (await spoolFiles()).length === 0);
  await rig.whenAllAcked();
});

test('what a killed worker has spooled is told by the next one with the same directory, in the name of the first', async () => {
  const victim = await rig.spawn({ nats, spoolDir, concurrency: 1 });
  const finish = join(spoolDir, 'finish');
  const id = await rig.enqueue({ payload: { do: 'wait-for', path: finish } });
  await victim.printed(`started ${id} 1`);
  proxy.cut();
  await writeFile(finish, '');
  await spooled(1);
  await victim.kill('SIGKILL');
  const heir = await rig.worker({ spoolDir, types: { [TYPE]: () => 'again' } });
  const completed = await rig.event(id, 'COMPLETED');
  expect(completed).toMatchObject({ actor: { id: victim.id }, data: { result: 'waited' } });
  expect(rig.kinds(id)).toEqual(oneAttempt);
  await eventually(async () => (await spoolFiles()).length === 0);
  await eventually(() => expect(heir.stats()).toMatchObject({ inherited: 1, completed: 1, claimed: 0 }));
  await rig.whenAllAcked();
});

test('what a killed worker has spooled is refused when another has taken over, and the hook hears of it', async () => {
  const victim = await rig.spawn({ nats, spoolDir, concurrency: 1 });
  const finish = join(spoolDir, 'finish');
  const id = await rig.enqueue({ payload: { do: 'wait-for', path: finish } });
  await victim.printed(`started ${id} 1`);
  proxy.cut();
  await writeFile(finish, '');
  const [outcome] = await spooled(1);
  await victim.kill('SIGKILL');
  const moved = await execute(rig.world.log, { tenant: TENANT, taskId: id }, () => ({
    kind: 'lose',
    eventId: randomUUID(),
    at: Date.now(),
    actor: { kind: 'worker', id: 'another' },
    attempt: 1,
    reason: 'worker_gone',
    dice: 0.5,
  }));
  expect(moved.ok).toBe(true);
  const lost = gate<{ id: string; attempt: number; cause: string }>();
  await rig.worker({
    spoolDir,
    types: { [TYPE]: () => 'again' },
    hooks: {
      lost: ({ task, cause }) => lost.open({ id: task.id, attempt: task.attempt, cause }),
    },
  });
  expect(await lost.opened).toEqual({ id, attempt: 1, cause: 'superseded' });
  expect(outcome?.command.actor.id).toBe(victim.id);
  expect(rig.kinds(id)).not.toContain('COMPLETED');
  await rig.whenAllAcked();
});

test('a worker that stops while it is cut off leaves its outcomes to the next', async () => {
  const { worker, id, finish } = await holdOne();
  proxy.blackhole();
  finish();
  await spooled(1);
  await worker.stop();
  expect(worker.stats()).toMatchObject({ spooled: 1, lost: 0 });
  const heir = await rig.worker({ spoolDir, types: { [TYPE]: () => 'again' } });
  expect(await rig.event(id, 'COMPLETED')).toMatchObject({
    actor: { id: worker.id },
    data: { result: 'kept' },
  });
  expect(heir.stats().claimed).toBe(0);
  await rig.whenAllAcked();
});

test('a worker that cannot write its spool takes no work and says so, until it can', async () => {
  const inTheWay = join(spoolDir, 'spool');
  await writeFile(inTheWay, '');
  const worker = await rig.worker({ spoolDir: inTheWay, types: { [TYPE]: () => 'done' } });
  const registry = await new Kvm(rig.world.nc).open(rig.world.names.buckets.workers);
  const degraded = async () => (await registry.get(worker.id))?.json<WorkerEntry>().degraded;
  await eventually(async () => expect(await degraded()).toMatch(/spool cannot be written/));
  const id = await rig.enqueue();
  await leaseIsLong();
  expect(rig.kinds(id)).toEqual(['INGESTED', 'QUEUED']);
  await unlink(inTheWay);
  await rig.event(id, 'COMPLETED');
  await eventually(async () => expect(await degraded()).toBeUndefined());
});

test('a worker whose disk is full takes no work and says so, until there is room', mounting, async () => {
  await mountSmallDisk(spoolDir);
  try {
    const filler = join(spoolDir, 'filler');
    const worker = await rig.worker({ spoolDir, types: { [TYPE]: () => 'done' } });
    await rig.event(await rig.enqueue(), 'COMPLETED');
    await writeFile(filler, Buffer.alloc(DISK_BYTES)).catch(() => undefined);
    const registry = await new Kvm(rig.world.nc).open(rig.world.names.buckets.workers);
    const degraded = async () => (await registry.get(worker.id))?.json<WorkerEntry>().degraded;
    await eventually(async () => expect(await degraded()).toMatch(/ENOSPC/));
    const id = await rig.enqueue();
    await leaseIsLong();
    expect(rig.kinds(id)).toEqual(['INGESTED', 'QUEUED']);
    await unlink(filler);
    await rig.event(id, 'COMPLETED');
    await eventually(async () => expect(await degraded()).toBeUndefined());
    await worker.stop();
  } finally {
    spawnSync('umount', [spoolDir]);
  }
});

test(
  'an outcome that finds the disk full is told all the same, when the way is open again',
  mounting,
  async () => {
    await mountSmallDisk(spoolDir);
    try {
      const { worker, id, finish } = await holdOne();
      await writeFile(join(spoolDir, 'filler'), Buffer.alloc(DISK_BYTES)).catch(() => undefined);
      proxy.cut();
      finish();
      await leaseIsLong();
      expect(await readSpooledFiles()).toEqual([]);
      proxy.pass();
      expect((await rig.event(id, 'COMPLETED')).data.result).toBe('kept');
      expect(rig.kinds(id)).toEqual(oneAttempt);
      await worker.stop();
    } finally {
      spawnSync('umount', [spoolDir]);
    }
  },
);

const readSpooledFiles = async () =>
  (await Promise.all((await spoolFiles()).map((name) => readFile(join(spoolDir, name), 'utf8')))).flatMap(
    (text) => readSpool(text).untold,
  );
