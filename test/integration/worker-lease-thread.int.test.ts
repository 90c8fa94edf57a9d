import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Kvm } from '@nats-io/kv';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import type { WorkerEntry } from '../../src/worker/worker-entry.ts';
import { eventually } from '../support/eventually.ts';
import { testNatsUrl } from '../support/servers.ts';
import { openWorkerRig, spawnWorker, TYPE, type WorkerRig } from '../support/worker-rig.ts';

/** Long enough to start a thread in, on a machine that others use too. */
const ACK_WAIT_MS = 8_000;
const oneAttempt = ['INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'COMPLETED'];

let rig: WorkerRig;
beforeAll(async () => {
  rig = await openWorkerRig(import.meta.url, { ackWaitMs: ACK_WAIT_MS });
});
afterAll(() => rig.stop());

test('a worker whose lease thread dies, again and again, starts another, and loses no lease', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'lease-thread-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  const finish = join(dir, 'finish');
  const preload = fileURLToPath(new URL('../support/killable-threads.cjs', import.meta.url));
  const holder = await spawnWorker(
    { nats: testNatsUrl(), prefix: rig.options.prefix, ackWaitMs: ACK_WAIT_MS, concurrency: 1 },
    { NODE_OPTIONS: `--require ${preload}` },
  );
  try {
    const registry = await new Kvm(rig.world.nc).open(rig.world.names.buckets.workers);
    const entry = () => registry.get(holder.id);
    const id = await rig.enqueue({ payload: { do: 'wait-for', path: finish } });
    await holder.printed(`started ${id} 1`);
    // Somebody else is there to take over what is not renewed.
    await rig.worker({ types: { [TYPE]: () => 'taken over' } });
    for (let times = 0; times < 2; times++) {
      process.kill(holder.pid, 'SIGUSR2');
      const seen = (await entry())?.revision ?? 0;
      await eventually(async () => {
        const later = await entry();
        if (later === null || later.revision <= seen) return false;
        return later.json<WorkerEntry>().active.length === 1;
      });
    }
    // What the last thread has not renewed is somebody else's by then.
    await pause(ACK_WAIT_MS);
    await writeFile(finish, '');
    expect((await rig.event(id, 'COMPLETED', 60_000)).data.result).toBe('waited');
    expect(rig.kinds(id)).toEqual(oneAttempt);
  } finally {
    await holder.kill();
  }
});
