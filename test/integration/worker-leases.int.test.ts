import { randomUUID } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { HandlerContext } from '../../src/index.ts';
import { execute } from '../../src/log/handle.ts';
import { eventually } from '../support/eventually.ts';
import { endless, gate } from '../support/gate.ts';
import { hardOfHearing } from '../support/hard-of-hearing.ts';
import { recordingLogger } from '../support/read-models.ts';
import { testNatsUrl } from '../support/servers.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { openWorkerRig, TENANT, TYPE, type WorkerRig } from '../support/worker-rig.ts';

/** Short, so that a lease is lost and found within a test; long enough to be kept on a machine that others use too. */
const ACK_WAIT_MS = 3_000;

let rig: WorkerRig;
/** Of files that handlers in other processes wait for. */
let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'worker-leases-'));
  rig = await openWorkerRig(import.meta.url, { ackWaitMs: ACK_WAIT_MS });
});
afterEach(() => rig.stopWorkers());
afterAll(async () => {
  await rig.stop();
  await rm(dir, { recursive: true, force: true });
});

const wait = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));
const block = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
const oneAttempt = ['INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'COMPLETED'];

/** Appends RETRY_CLAIMED as another worker would. */
const loseAsAnother = (taskId: string) =>
  execute(rig.world.log, { tenant: TENANT, taskId }, (state) => ({
    kind: 'lose',
    eventId: randomUUID(),
    at: Date.now(),
    actor: { kind: 'worker', id: 'another' },
    attempt: state?.attempt ?? 0,
    reason: 'lease_expired',
    dice: 0.5,
  }));

/** As if the renewals of the one running attempt had been lost: the server is told to deliver its work item again. */
async function deliverAgain(): Promise<void> {
  const { nc, names } = rig.world;
  const subscription = nc.subscribe(`$JS.ACK.${names.streams.tasks}.${names.workConsumer(TYPE)}.>`);
  for await (const { subject, data } of subscription) {
    if (Buffer.from(data).toString() !== '+WPI') continue;
    nc.publish(subject, '-NAK');
    return;
  }
}

describe('a lease is kept', () => {
  test('while a handler works for longer than the ack-wait', async () => {
    await rig.worker({ types: { [TYPE]: () => wait(2 * ACK_WAIT_MS) } });
    const id = await rig.enqueue();
    await rig.event(id, 'COMPLETED');
    expect(rig.kinds(id)).toEqual(oneAttempt);
    await rig.whenAllAcked();
  });

  test('while a handler blocks the event loop from its very start for many ack-waits', async () => {
    const other = await rig.spawn({ concurrency: 1 });
    const held = await rig.enqueue({ payload: { do: 'wait', ms: 60_000 } });
    await other.printed(`started ${held} 1`);
    await rig.worker({ concurrency: 1, types: { [TYPE]: () => block(3 * ACK_WAIT_MS) } });
    const id = await rig.enqueue();
    await rig.event(id, 'COMPLETED');
    expect(rig.kinds(id)).toEqual(oneAttempt);
    await loseAsAnother(held);
  });

  test('when its delivery comes again to its own worker', async () => {
    const started = gate();
    const finish = gate();
    await rig.worker({
      types: {
        [TYPE]: async () => {
          started.open();
          await finish.opened;
        },
      },
    });
    const id = await rig.enqueue();
    await started.opened;
    await deliverAgain();
    await eventually(async () => (await rig.consumer()).num_redelivered > 0);
    finish.open();
    await rig.event(id, 'COMPLETED');
    expect(rig.kinds(id)).toEqual(oneAttempt);
    await rig.whenAllAcked();
  });

  test('when its delivery comes to another worker while the holder lives', async () => {
    const holder = await rig.spawn({ concurrency: 1 });
    const path = join(dir, randomUUID());
    const id = await rig.enqueue({ payload: { do: 'wait-for', path } });
    await holder.printed(`started ${id} 1`);
    const other = await rig.worker({ types: { [TYPE]: () => 'other' } });
    await deliverAgain();
    await eventually(() => other.stats().handedBack > 0);
    await writeFile(path, '');
    const completed = await rig.event(id, 'COMPLETED');
    expect(completed.actor.id).toBe(holder.id);
    expect(rig.kinds(id)).toEqual(oneAttempt);
    await rig.whenAllAcked();
  });

  test('when another worker gets no answer to its question after the holder, and says so in a line', async () => {
    const holder = await rig.spawn({ concurrency: 1 });
    const id = await rig.enqueue({ payload: { do: 'wait', ms: 60_000 } });
    await holder.printed(`started ${id} 1`);
    const { nc, names } = rig.world;
    const logger = recordingLogger();
    await rig.worker({
      nats: hardOfHearing(nc, `$JS.API.STREAM.MSG.GET.KV_${names.buckets.workers}`),
      types: { [TYPE]: () => 'other' },
      logger,
    });
    await deliverAgain();
    const told = 'attempt not begun: the log does not answer; it comes again';
    await eventually(() => logger.lines.some(({ message }) => message === told), { timeoutMs: 30_000 });
    expect(logger.lines.find(({ message }) => message === told)).toMatchObject({
      level: 'warn',
      fields: { code: 'log_unavailable', reason: expect.any(String) },
    });
    expect(logger.lines.filter(({ level, fields }) => level === 'error' || 'err' in fields)).toEqual([]);
    expect(rig.kinds(id)).toEqual(['INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING']);
    await loseAsAnother(id);
    await rig.whenAllAcked();
  });
});

describe('an attempt goes back by itself, and counts', () => {
  /** The attempt of a dead process is recorded as lost; queued again, it is made by a live worker. */
  async function expectRecovery(id: string, lostWorker: string): Promise<void> {
    const { data } = await rig.event(id, 'RETRY_CLAIMED');
    expect(data).toMatchObject({ lostWorker, next: { retryInMs: expect.any(Number) } });
    expect(rig.world.stateOf(id)).toMatchObject({ attempt: 1, status: 'RETRY_CLAIMED', facts: { lost: 1 } });
    await rig.requeue(id);
    expect((await rig.event(id, 'COMPLETED')).attempt).toBe(2);
    await rig.whenAllAcked();
  }

  test('when its worker is killed', async () => {
    const victim = await rig.spawn({ concurrency: 1 });
    const id = await rig.enqueue({ payload: { do: 'wait', ms: 60_000 } });
    await victim.printed(`started ${id} 1`);
    await victim.kill('SIGKILL');
    const heir = await rig.worker({ types: { [TYPE]: () => 'heir' } });
    await expectRecovery(id, victim.id);
    await eventually(() => expect(heir.stats()).toMatchObject({ reclaimed: 1, completed: 1 }));
  });

  test.each([
    ['calls process.exit', { do: 'exit', ms: 3 }],
    ['throws where nobody can catch it', { do: 'throw-after-return' }],
  ])('when its handler %s', async (_what, payload) => {
    const victim = await rig.spawn({ concurrency: 1 });
    const id = await rig.enqueue({ payload });
    expect(await victim.exited).not.toBe(0);
    await rig.worker({ types: { [TYPE]: () => 'heir' } });
    await expectRecovery(id, victim.id);
  });

  test('when its handler blocks the event loop for longer than a worker may be stuck', async () => {
    const stuck = await rig.spawn({ concurrency: 1, maxBlockedMs: 1_500 });
    const path = join(dir, randomUUID());
    const id = await rig.enqueue({ payload: { do: 'block-until', path } });
    await stuck.printed(`started ${id} 1`);
    await rig.worker({ types: { [TYPE]: () => 'heir' } });
    await expectRecovery(id, stuck.id);
    // The stuck one returns from its block, and finds that its result is refused.
    await writeFile(path, '');
    await stuck.printed(new RegExp(`^lost ${id}`));
    expect(rig.kinds(id).filter((kind) => kind === 'COMPLETED')).toHaveLength(1);
  });

  test('when its handler blocks the event loop past its timeout', async () => {
    const stuck = await rig.spawn({ concurrency: 1, abortGraceMs: 100 });
    const payload = { do: 'block-until', path: join(dir, 'never') };
    const id = await rig.enqueue({ payload, policy: { timeoutMs: 500 } });
    await stuck.printed(`started ${id} 1`);
    await rig.worker({ types: { [TYPE]: () => 'heir' } });
    await expectRecovery(id, stuck.id);
  });
});

test('a worker told to stop by its process gives back what does not end, and leaves no lease behind', async () => {
  const child = await rig.spawn({ concurrency: 1, shutdownGraceMs: 50, abortGraceMs: 50 });
  const id = await rig.enqueue({ payload: { do: 'wait', ms: 60_000 } });
  await child.printed(`started ${id} 1`);
  await child.kill('SIGTERM');
  expect((await rig.event(id, 'RETRY_CLAIMED')).data.reason).toBe('shutdown');
  await rig.whenAllAcked();
});

test('a stopped worker leaves nothing that keeps its process alive', async () => {
  const child = await rig.spawn({ concurrency: 2 });
  const id = await rig.enqueue({ payload: { do: 'echo' } });
  await rig.event(id, 'COMPLETED');
  await child.kill('SIGINT');
  expect(await child.exited).toBe(0);
});

test('a worker whose leases could not be renewed does not start', async () => {
  const nowhere = { leaseNats: 'nats://127.0.0.1:1', startTimeoutMs: 1_000 };
  const start = rig.worker({ ...nowhere, types: { [TYPE]: () => 1 } });
  await expect(start).rejects.toMatchObject({ code: 'nats_unreachable' });
});

test('a rejection that a handler forgot is told, and neither ends the process nor touches other attempts', async () => {
  const child = await rig.spawn({ concurrency: 4 });
  const other = await rig.enqueue({ payload: { do: 'wait', ms: 500 } });
  const id = await rig.enqueue({ payload: { do: 'reject-after-return' } });
  expect((await rig.event(id, 'COMPLETED')).data.result).toBe('returned');
  await child.printed('stray Error: stray');
  expect((await rig.event(other, 'COMPLETED')).data.result).toBe('waited');
  await rig.whenAllAcked();
});

test('a rejection that a handler forgot ends the process when the worker leaves it to Node', async () => {
  const child = await rig.spawn({ concurrency: 1, strayRejections: 'crash' });
  const id = await rig.enqueue({ payload: { do: 'reject-after-return' } });
  expect(await child.exited).not.toBe(0);
  // Whether the result was told before depends on who was faster.
  if (!rig.kinds(id).includes('COMPLETED')) await loseAsAnother(id);
});

describe('a lost lease', () => {
  test('aborts the handler at once, and its result is refused', async () => {
    const started = gate();
    const told = gate<unknown>();
    const finish = gate();
    const worker = await rig.worker({
      types: {
        [TYPE]: async ({ signal }: HandlerContext) => {
          signal.addEventListener('abort', () => told.open(signal.reason));
          started.open();
          await finish.opened;
          return 'too late';
        },
      },
    });
    const id = await rig.enqueue();
    await started.opened;
    await loseAsAnother(id);
    expect(await told.opened).toMatchObject({ reason: 'superseded', name: 'AbortError' });
    finish.open();
    await eventually(() => worker.stats().lost === 1);
    expect(rig.kinds(id)).toEqual(['INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'RETRY_CLAIMED']);
    await rig.whenAllAcked();
  });
});

describe('cut off from NATS', () => {
  const proxied = async () => {
    const proxy = await startTcpProxy({ port: Number(new URL(testNatsUrl()).port) });
    return { proxy, nats: `nats://127.0.0.1:${proxy.port}` };
  };

  test('a worker finishes what it holds and tells the outcome when the way is open again', async () => {
    const { proxy, nats } = await proxied();
    const started = gate();
    const finish = gate();
    const worker = await rig.worker({
      nats,
      types: {
        [TYPE]: async () => {
          started.open();
          await finish.opened;
          return 'kept';
        },
      },
    });
    const id = await rig.enqueue();
    await started.opened;
    proxy.cut();
    finish.open();
    await wait(300);
    proxy.pass();
    expect((await rig.event(id, 'COMPLETED')).data.result).toBe('kept');
    expect(rig.kinds(id)).toEqual(oneAttempt);
    await rig.whenAllAcked();
    // It takes new work over the new connection.
    const next = await rig.enqueue();
    await rig.event(next, 'COMPLETED');
    await eventually(() => expect(worker.stats().completed).toBe(2));
    await worker.stop();
    await proxy.close();
  });

  test('for a moment, a worker hears afterwards of the cancellation that it has missed', async () => {
    const { proxy, nats } = await proxied();
    const started = gate();
    await rig.worker({
      nats,
      types: {
        [TYPE]: ({ signal }: HandlerContext) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => reject(signal.reason as Error));
            started.open();
          }),
      },
    });
    const id = await rig.enqueue();
    await started.opened;
    proxy.cut();
    await rig.world.execute(id, () => ({
      kind: 'request_cancel',
      eventId: randomUUID(),
      at: Date.now(),
      actor: { kind: 'user', id: 'ada' },
    }));
    proxy.pass();
    await rig.event(id, 'CANCELLED');
    await rig.whenAllAcked();
    await rig.stopWorkers();
    await proxy.close();
  });

  test('for an ack-wait the handler is told that the lease is gone, and another worker makes the next attempt', async () => {
    const { proxy, nats } = await proxied();
    const told = gate<unknown>();
    const started = gate();
    const cut = await rig.worker({
      nats,
      types: {
        [TYPE]: ({ signal }: HandlerContext) =>
          new Promise((_, reject) => {
            signal.addEventListener('abort', () => {
              told.open(signal.reason);
              reject(signal.reason as Error);
            });
            started.open();
          }),
      },
    });
    const id = await rig.enqueue();
    await started.opened;
    proxy.blackhole();
    expect(await told.opened).toMatchObject({ reason: 'lease_expired' });
    await rig.worker({ types: { [TYPE]: () => 'other' } });
    expect((await rig.event(id, 'RETRY_CLAIMED')).data.lostWorker).toBe(cut.id);
    await rig.requeue(id);
    expect((await rig.event(id, 'COMPLETED')).data.result).toBe('other');
    proxy.pass();
    await cut.stop();
    await proxy.close();
  });

  test('a worker that is told to stop does stop, and its attempt goes back by itself', async () => {
    const { proxy, nats } = await proxied();
    const started = gate();
    const cut = await rig.worker({
      nats,
      shutdownGraceMs: 50,
      abortGraceMs: 50,
      types: {
        [TYPE]: endless(started),
      },
    });
    const id = await rig.enqueue();
    await started.opened;
    proxy.blackhole();
    await cut.stop();
    await rig.worker({ types: { [TYPE]: () => 'other' } });
    expect((await rig.event(id, 'RETRY_CLAIMED')).data.lostWorker).toBe(cut.id);
    await rig.whenAllAcked();
    await proxy.close();
  });
});
