import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createWorker } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { endless, gate } from '../support/gate.ts';
import { hardOfHearing } from '../support/hard-of-hearing.ts';
import { openWorkerRig, TENANT, TYPE, type WorkerRig } from '../support/worker-rig.ts';

let rig: WorkerRig;
/** Longer than any wait of a test: what nobody gives back before its lease ends is missed. */
const ACK_WAIT_MS = 120_000;

beforeAll(async () => {
  rig = await openWorkerRig(import.meta.url, { ackWaitMs: ACK_WAIT_MS });
});
afterEach(() => rig.stopWorkers());
afterAll(() => rig.stop());

describe('a worker', () => {
  test('never runs more at once than it may, in all and by type', async () => {
    let now = 0;
    let most = 0;
    const handler = async () => {
      most = Math.max(most, ++now);
      await new Promise((resolve) => setTimeout(resolve, 3));
      now -= 1;
    };
    await rig.worker({ concurrency: 4, types: { [TYPE]: handler } });
    const ids = await Promise.all(Array.from({ length: 80 }, () => rig.enqueue()));
    await Promise.all(ids.map((id) => rig.event(id, 'COMPLETED')));
    expect(most).toBe(4);
  });

  test('shares its slots among types, and runs one type on all of them when the others are idle', async () => {
    const release = gate();
    let running = 0;
    const hold = async () => {
      running += 1;
      await release.opened;
    };
    await rig.worker({ concurrency: 6, types: { [TYPE]: hold, thumbnail: hold, analysis: hold } });
    const ids = await Promise.all(Array.from({ length: 12 }, () => rig.enqueue({ type: 'thumbnail' })));
    await eventually(() => running === 6);
    release.open();
    await Promise.all(ids.map((id) => rig.event(id, 'COMPLETED')));
    await rig.whenAllAcked('thumbnail');
  });

  test('with one slot and many types leaves none of them waiting for ever', async () => {
    const types = ['t1', 't2', 't3', 't4'];
    await rig.worker({ concurrency: 1, types: Object.fromEntries(types.map((type) => [type, () => type])) });
    const ids = await Promise.all(
      Array.from({ length: 40 }, (_, i) => rig.enqueue({ type: types[i % types.length] as string })),
    );
    await Promise.all(ids.map((id) => rig.event(id, 'COMPLETED')));
    for (const type of types) await rig.whenAllAcked(type);
  });

  test('starts although every second question to JetStream gets no answer at first', async () => {
    const spoolDir = await mkdtemp(join(tmpdir(), 'taskledger-start-'));
    const asked = new Map<string, number>();
    await rig.worker({
      nats: hardOfHearing(rig.world.nc, '$JS.API.STREAM.INFO.', asked),
      spoolDir,
      types: { [TYPE]: () => 'ok' },
    });
    expect(asked.get(`$JS.API.STREAM.INFO.${rig.world.names.streams.tasks}`)).toBeGreaterThan(2);
    await rig.event(await rig.enqueue(), 'COMPLETED');
    await rig.stopWorkers();
    await rm(spoolDir, { recursive: true });
  });

  test('goes on when its consumer was deleted under it', async () => {
    const worker = await rig.worker({ types: { [TYPE]: () => 'ok' } });
    const first = await rig.enqueue();
    await rig.event(first, 'COMPLETED');
    const jsm = await jetstreamManager(rig.world.nc);
    await jsm.consumers.delete(rig.world.names.streams.tasks, rig.world.names.workConsumer(TYPE));
    const second = await rig.enqueue();
    await rig.event(second, 'COMPLETED');
    // The new consumer delivers everything again: what is settled is only acked.
    await rig.whenAllAcked();
    expect(rig.kinds(first).filter((kind) => kind === 'COMPLETED')).toHaveLength(1);
    expect(worker.stats().completed).toBe(2);
  });

  test('acks a delivery of a task that has moved on, and runs nothing', async () => {
    const id = await rig.enqueue();
    await rig.world.execute(id, () => ({
      kind: 'request_cancel',
      eventId: crypto.randomUUID(),
      at: Date.now(),
      actor: { kind: 'user', id: 'ada' },
    }));
    const worker = await rig.worker({ types: { [TYPE]: () => 'ran' } });
    await rig.whenAllAcked();
    expect(worker.stats().claimed).toBe(0);
  });

  test('tells its hooks, and survives a hook that throws', async () => {
    const told: string[] = [];
    await rig.worker({
      types: { [TYPE]: ({ payload }) => payload },
      hooks: {
        started: () => {
          told.push('started');
          throw new Error('hook');
        },
        completed: ({ result, task }) => {
          told.push(`completed ${task.type} ${JSON.stringify(result)}`);
        },
      },
    });
    const id = await rig.enqueue({ payload: 5 });
    await rig.event(id, 'COMPLETED');
    await rig.whenAllAcked();
    expect(told).toEqual(['started', `completed ${TYPE} 5`]);
  });
});

describe('a worker that stops', () => {
  test('waits for what runs', async () => {
    const started = gate();
    const finish = gate();
    const worker = await rig.worker({
      shutdownGraceMs: 10_000,
      types: {
        [TYPE]: async () => {
          started.open();
          await finish.opened;
          return 'done';
        },
      },
    });
    const id = await rig.enqueue();
    await started.opened;
    const stopped = worker.stop();
    finish.open();
    await stopped;
    expect((await rig.event(id, 'COMPLETED')).data.result).toBe('done');
    await rig.whenAllAcked();
  });

  test('aborts after the grace, and gives back at once what does not end', async () => {
    const started = gate();
    const worker = await rig.worker({
      shutdownGraceMs: 20,
      abortGraceMs: 20,
      types: {
        [TYPE]: endless(started),
      },
    });
    const id = await rig.enqueue();
    await started.opened;
    await worker.stop();
    expect((await rig.event(id, 'RETRY_CLAIMED')).data).toMatchObject({
      reason: 'shutdown',
      lostWorker: worker.id,
    });
    await rig.whenAllAcked();
    expect(worker.stats()).toMatchObject({ released: 1, running: 0 });
  });

  test('takes nothing more, and leaves nothing that another would wait for', async () => {
    const started = gate();
    const finish = gate();
    const first = await rig.worker({
      concurrency: 1,
      shutdownGraceMs: 10_000,
      types: {
        [TYPE]: async () => {
          started.open();
          await finish.opened;
        },
      },
    });
    const held = await rig.enqueue();
    await started.opened;
    const draining = first.drain();
    const second = await rig.worker({ types: { [TYPE]: () => 'second' } });
    const ids = await Promise.all(Array.from({ length: 20 }, () => rig.enqueue()));
    // Well under the ack-wait: nothing sits with the stopping worker.
    await Promise.all(ids.map((id) => rig.event(id, 'COMPLETED')));
    await eventually(() => expect(second.stats().completed).toBe(20));
    finish.open();
    await draining;
    await rig.event(held, 'COMPLETED');
    expect(first.stats().completed).toBe(1);
  });

  test('may be stopped twice, and before it has started', async () => {
    const unstarted = createWorker({ ...rig.options, types: { [TYPE]: () => 1 } });
    await unstarted.stop();
    await unstarted.stop();
    const worker = await rig.worker({ types: { [TYPE]: () => 1 } });
    await Promise.all([worker.stop(), worker.stop()]);
    await worker.stop();
  });
});

describe('the registry', () => {
  let quick: WorkerRig;
  beforeAll(async () => {
    quick = await openWorkerRig(import.meta.url, { ackWaitMs: 600 });
  });
  afterAll(() => quick.stop());
  const entryOf = async (workerId: string) => {
    const kv = await new Kvm(quick.world.nc).open(quick.world.names.buckets.workers);
    const found = await kv.get(workerId);
    return found === null || found.operation !== 'PUT' ? undefined : found.json<Record<string, unknown>>();
  };

  test('knows a worker from its start, what it runs with its progress, and no longer when it has stopped', async () => {
    const finish = gate();
    const worker = await quick.worker({
      concurrency: 3,
      types: {
        [TYPE]: async ({ heartbeat }) => {
          heartbeat({ percent: 10 });
          heartbeat({ percent: 40 });
          await finish.opened;
        },
      },
    });
    expect(await entryOf(worker.id)).toMatchObject({
      id: worker.id,
      types: [TYPE],
      concurrency: 3,
      active: [],
    });
    const id = await quick.enqueue();
    await eventually(async () => {
      expect((await entryOf(worker.id))?.['active']).toEqual([
        { task: `${TENANT}/${id}`, attempt: 1, progress: { percent: 40 } },
      ]);
    });
    finish.open();
    await worker.stop();
    expect(await entryOf(worker.id)).toBeUndefined();
  });
});
