import { randomUUID } from 'node:crypto';
import { jetstreamManager } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { describe, expect, it, type TestContext } from 'vitest';
import { createDispatcher } from '../../src/dispatch/dispatcher.ts';
import { createWorker, type WorkerOptions } from '../../src/index.ts';
import { createUnserved } from '../../src/intake/unserved.ts';
import { createLogger } from '../../src/observe/log.ts';
import { systemClock } from '../../src/platform/clock.ts';
import type { Config } from '../../src/platform/config.ts';
import { eventually } from '../support/eventually.ts';
import { testNamespace, testNatsUrl } from '../support/servers.ts';
import { openTaskWorld, type TaskWorld, TENANT, TYPE } from '../support/task-world.ts';

const logger = createLogger({ logLevel: 'error' });
let worlds = 0;

/** An installation of one test, with a leading dispatcher that looks for undriven work ten times a second. */
async function setup({ onTestFinished }: TestContext, settings: Partial<Config> = {}) {
  worlds += 1;
  const prefix = testNamespace(import.meta.url).replace(/_$/, `${worlds}_`);
  const world = await openTaskWorld(prefix, {
    // Longer than any test: the one dispatcher goes on leading, however long the machine holds it up.
    leaderLeaseMs: 600_000,
    reconcileEveryMs: 100,
    ackWaitMs: 1_000,
    ...settings,
  });
  onTestFinished(() => world.stop());
  const { nc, log, clock } = await world.connect();
  const { names, config } = world;
  const dispatcher = createDispatcher({ nc, log, names, config, clock, logger });
  onTestFinished(() => dispatcher.stop());
  await dispatcher.start();
  await dispatcher.whenLeader();
  const work = async (types: WorkerOptions['types']) => {
    const worker = createWorker({ nats: testNatsUrl(), prefix, types, logger, shutdownGraceMs: 500 });
    onTestFinished(() => worker.stop());
    await worker.start();
    return worker;
  };
  return { world, dispatcher, work, jsm: await jetstreamManager(world.nc) };
}

const until = (world: TaskWorld, id: string, kind: string, timeoutMs = 60_000) =>
  eventually(() => expect(world.kindsOf(id).at(-1)).toBe(kind), { timeoutMs });
const times = (world: TaskWorld, id: string, kind: string): number =>
  world.kindsOf(id).filter((other) => other === kind).length;
const storedAtOf = (world: TaskWorld, id: string, kind: string): number =>
  world.book.get(id)?.find(({ event }) => event.kind === kind)?.storedAt ?? Number.NaN;

describe('work that nobody drives is found and done', () => {
  it('when the consumer has acked an item away that was never claimed', async (context) => {
    const { world, work } = await setup(context);
    const ids = await Promise.all([world.ingest(), world.ingest()]);
    for (const id of ids) await until(world, id, 'QUEUED');
    const lost = await lostDelivery(world, ids.length);
    expect(lost).toBe(ids.length);
    await work({ [TYPE]: () => null });
    for (const id of ids) await until(world, id, 'COMPLETED');
    for (const id of ids) expect(times(world, id, 'COMPLETED')).toBe(1);
    for (const id of ids) expect(world.kindsOf(id).slice(0, 3)).toEqual(['INGESTED', 'QUEUED', 'QUEUED']);
  });

  it('when the consumer is deleted: it is made anew from the oldest open item', async (context) => {
    const { world, work, jsm } = await setup(context);
    const first = await work({ [TYPE]: () => null });
    const before = await Promise.all(Array.from({ length: 20 }, () => world.ingest()));
    for (const id of before) await until(world, id, 'COMPLETED');
    await first.stop();
    const id = await world.ingest();
    await until(world, id, 'QUEUED');
    const consumer = world.names.workConsumer(TYPE);
    await jsm.consumers.delete(world.names.streams.tasks, consumer);
    const made = await eventually(() => jsm.consumers.info(world.names.streams.tasks, consumer));
    expect(made.config.opt_start_seq).toBe(world.stateOf(id)?.seq);
    expect(made.num_pending).toBe(1);
    await work({ [TYPE]: () => null });
    await until(world, id, 'COMPLETED');
  });

  it('when a worker has left the registry and its delivery is gone as well', async (context) => {
    const { world } = await setup(context);
    const id = await world.ingest({ policy: { backoff: { kind: 'fixed', baseMs: 100 } } });
    await until(world, id, 'QUEUED');
    await lostDelivery(world, 1);
    const actor = { kind: 'worker', id: 'gone' } as const;
    await world.execute(id, () => ({ kind: 'claim', eventId: randomUUID(), at: Date.now(), actor }));
    await eventually(() => expect(times(world, id, 'RETRY_CLAIMED')).toBe(1));
    expect(storedAtOf(world, id, 'RETRY_CLAIMED') - storedAtOf(world, id, 'CLAIMED')).toBeGreaterThan(1_000);
    await until(world, id, 'QUEUED');
    const lost = world.book.get(id)?.find(({ event }) => event.kind === 'RETRY_CLAIMED')?.event;
    expect(lost).toMatchObject({ data: { lostWorker: 'gone', reason: 'worker_gone' } });
  });

  it('when a worker was killed and its delivery is gone with the consumer, long before the registry forgets it', async (context) => {
    const { world, work, jsm } = await setup(context);
    const id = await world.ingest({ policy: { backoff: { kind: 'fixed', baseMs: 100 } } });
    await until(world, id, 'QUEUED');
    await lostDelivery(world, 1);
    const kv = await new Kvm(world.nc).open(world.names.buckets.workers);
    const task = `${TENANT}/${id}`;
    const entry = { id: 'killed', types: [TYPE], everyMs: 100, active: [{ task, attempt: 1 }] };
    await kv.put('killed', JSON.stringify(entry));
    const actor = { kind: 'worker', id: 'killed' } as const;
    await world.execute(id, () => ({ kind: 'claim', eventId: randomUUID(), at: Date.now(), actor }));
    await jsm.consumers.delete(world.names.streams.tasks, world.names.workConsumer(TYPE));
    await work({ [TYPE]: () => null });
    await until(world, id, 'COMPLETED');
    const lost = world.book.get(id)?.find(({ event }) => event.kind === 'RETRY_CLAIMED')?.event;
    expect(lost).toMatchObject({ data: { lostWorker: 'killed', reason: 'worker_gone' } });
    expect((await kv.get('killed'))?.operation).toBe('PUT');
  });

  it('but an attempt that its worker reports is left alone, however long it takes', async (context) => {
    const { world, work, jsm } = await setup(context, { ackWaitMs: 300 });
    let finish = (): void => {};
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    await work({ [TYPE]: () => finished });
    const id = await world.ingest();
    await until(world, id, 'PROCESSING');
    await jsm.consumers.delete(world.names.streams.tasks, world.names.workConsumer(TYPE));
    // Beyond the worker's patience and an ack-wait.
    const late = await world.ingest({ runAt: Date.now() + 4_500, type: 'other' });
    await until(world, late, 'QUEUED');
    expect(world.kindsOf(id).at(-1)).toBe('PROCESSING');
    finish();
    await until(world, id, 'COMPLETED');
    expect(times(world, id, 'RETRY_CLAIMED')).toBe(0);
  });
});

describe('lost workers', () => {
  it('a task that keeps losing them is dead-lettered as poison, with retries left', async (context) => {
    const { world } = await setup(context);
    await world.work(() => 'lose');
    const policy = { maxRetries: 50, maxLost: 2, backoff: { kind: 'fixed', baseMs: 100 } } as const;
    const id = await world.ingest({ policy });
    await until(world, id, 'DEAD_LETTER');
    expect(times(world, id, 'RETRY_CLAIMED')).toBe(3);
    expect(world.book.get(id)?.at(-1)?.event.data).toMatchObject({ reason: 'poison' });
  });
});

// These wait more than they compute.
describe.concurrent('in time', () => {
  it('work that no worker came for in a whole hot window is found and done', async (context) => {
    const { world, work } = await setup(context, { hotWindowHours: 8 / 3_600 });
    const id = await world.ingest({ payload: 'kept', fingerprint: 'f' });
    const late = await world.ingest({ runAt: Date.now() + 18_000, type: 'other' });
    await until(world, late, 'QUEUED');
    expect(times(world, id, 'QUEUED')).toBeGreaterThan(3);
    expect(world.stateOf(id)).toMatchObject({ status: 'QUEUED', payload: 'kept', fingerprint: 'f' });
    const seen: unknown[] = [];
    await work({ [TYPE]: ({ payload }) => void seen.push(payload) });
    await until(world, id, 'COMPLETED');
    expect(seen).toEqual(['kept']);
  });

  it('lost workers all over the fleet condemn nothing: the tasks are tried again when attempts end well', async (context) => {
    const { world } = await setup(context);
    let ill = true;
    await world.work(() => (ill ? 'lose' : 'complete'));
    const policy = { maxRetries: 0, maxLost: 0 };
    const ids = await Promise.all(Array.from({ length: 40 }, () => world.ingest({ policy })));
    await eventually(() => expect(world.count('RETRY_CLAIMED') + world.count('DEAD_LETTER')).toBe(40));
    ill = false;
    const others = await Promise.all(Array.from({ length: 60 }, () => world.ingest()));
    for (const id of others) await until(world, id, 'COMPLETED');
    await eventually(() => expect(world.count('COMPLETED') + world.count('DEAD_LETTER')).toBe(100), {
      timeoutMs: 60_000,
    });
    // Those that were lost before there were enough of them to tell.
    expect(world.count('DEAD_LETTER')).toBeLessThan(20);
    const spared = ids.filter((id) => world.kindsOf(id).at(-1) === 'COMPLETED');
    expect(spared.length).toBeGreaterThan(20);
    for (const id of spared) expect(world.stateOf(id)?.facts).toMatchObject({ pardoned: 1, lost: 0 });
  });

  it('a task of version 2 waits with an alarm for a worker that knows it, and does not hold up version 1', async (context) => {
    const { world, work } = await setup(context);
    const unserved = createUnserved({ nc: world.nc, names: world.names, clock: systemClock });
    await unserved.start();
    context.onTestFinished(() => unserved.stop());
    const ran: [version: number, by: string][] = [];
    await work({ [TYPE]: ({ task }) => void ran.push([task.version, 'old']) });
    const second = await Promise.all(Array.from({ length: 30 }, () => world.ingest({ version: 2 })));
    const first = await Promise.all(Array.from({ length: 30 }, () => world.ingest()));
    for (const id of first) await until(world, id, 'COMPLETED');
    await eventually(() => expect(unserved.versionsOf(TYPE)).toEqual([2]));
    expect(ran.every(([version, by]) => version === 1 && by === 'old')).toBe(true);
    for (const id of second) expect(world.kindsOf(id)).not.toContain('CLAIMED');

    await work({
      [TYPE]: { handler: ({ task }) => void ran.push([task.version, 'new']), versions: [1, 2] },
    });
    for (const id of second) await until(world, id, 'COMPLETED');
    expect(ran.filter(([version]) => version === 2)).toEqual(second.map(() => [2, 'new']));
    await eventually(() => expect(unserved.all()).toEqual([]));
  });
});

/** Takes the deliveries of unclaimed items and acks them, as no worker does: a work item that the consumer will not give again. */
async function lostDelivery(world: TaskWorld, count: number): Promise<number> {
  const inbox = `_INBOX.${randomUUID()}`;
  let acked = 0;
  const { nc, names } = world;
  const subscription = nc.subscribe(inbox, {
    callback: (_error, message) => {
      if (message.reply === undefined || message.reply === '') return;
      nc.publish(message.reply, '+ACK');
      acked += 1;
    },
  });
  const subject = `$JS.API.CONSUMER.MSG.NEXT.${names.streams.tasks}.${names.workConsumer(TYPE)}`;
  nc.publish(subject, JSON.stringify({ batch: count, expires: 5e9 }), { reply: inbox });
  await eventually(() => expect(acked).toBe(count));
  subscription.unsubscribe();
  expect([...world.book.values()].every(([first]) => first?.event.tenant === TENANT)).toBe(true);
  return acked;
}
