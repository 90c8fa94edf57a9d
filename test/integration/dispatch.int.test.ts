import { jetstreamManager } from '@nats-io/jetstream';
import { afterEach, describe, expect, it } from 'vitest';
import { createDispatcher, type Dispatcher, type DispatcherParts } from '../../src/dispatch/dispatcher.ts';
import type { Recorded } from '../../src/domain/events.ts';
import { createLogger } from '../../src/observe/log.ts';
import type { Config } from '../../src/platform/config.ts';
import { eventually } from '../support/eventually.ts';
import { testNamespace } from '../support/servers.ts';
import { openTaskWorld, type TaskWorld, TENANT, TYPE } from '../support/task-world.ts';

const logger = createLogger({ logLevel: 'warn' });
/** Longer than any test: who leads goes on leading, however long the machine holds it up. */
const LEASE_MS = 600_000;
const actor = { kind: 'user', id: 'ada' } as const;
let worlds = 0;
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function setup(settings: Partial<Config> = {}) {
  worlds += 1;
  const prefix = testNamespace(import.meta.url).replace(/_$/, `${worlds}_`);
  const world = await openTaskWorld(prefix, { leaderLeaseMs: LEASE_MS, ...settings });
  stops.push(() => world.stop());
  return world;
}

/** A dispatcher on a connection of its own, started. */
async function dispatch(world: TaskWorld, over: Partial<DispatcherParts['config']> = {}) {
  const { nc, log, clock } = await world.connect();
  const dispatcher = createDispatcher({
    nc,
    log,
    names: world.names,
    config: { ...world.config, ...over },
    clock,
    logger,
  });
  stops.push(() => dispatcher.stop());
  await dispatcher.start();
  return { dispatcher, nc };
}

async function leader(world: TaskWorld, over: Partial<DispatcherParts['config']> = {}): Promise<Dispatcher> {
  const { dispatcher } = await dispatch(world, over);
  await dispatcher.whenLeader();
  return dispatcher;
}

const ingestMany = async (world: TaskWorld, count: number, over: Parameters<TaskWorld['ingest']>[0] = {}) =>
  Promise.all(Array.from({ length: count }, () => world.ingest(over)));

/** Every task has ended well, and none was queued twice for one attempt. */
function expectEachDoneOnce(world: TaskWorld, ids: readonly string[]): void {
  for (const id of ids) {
    const kinds = world.kindsOf(id);
    expect(kinds.at(-1)).toBe('COMPLETED');
    expect(kinds.filter((kind) => kind === 'COMPLETED')).toHaveLength(1);
    expect(kinds.filter((kind) => kind === 'QUEUED')).toHaveLength(
      kinds.filter((kind) => kind === 'CLAIMED').length,
    );
  }
}

const untilCompleted = (world: TaskWorld, count: number, timeoutMs = 60_000) =>
  eventually(() => expect(world.count('COMPLETED')).toBe(count), { timeoutMs });

const storedAtOf = (world: TaskWorld, id: string, kind: Recorded['event']['kind'], nth = 0): number =>
  (world.book.get(id) ?? []).filter(({ event }) => event.kind === kind)[nth]?.storedAt ?? Number.NaN;

describe('dispatch', () => {
  it('queues every ingested task once, and each is done', async () => {
    const world = await setup();
    await world.work();
    const dispatcher = await leader(world);
    const ids = await ingestMany(world, 1_000);
    await untilCompleted(world, 1_000);
    expectEachDoneOnce(world, ids);
    // The dispatcher may hear of an event, and of what it has stored, a little later than the test does.
    await eventually(() =>
      expect(dispatcher.stats()).toMatchObject({ liveTasks: 0, appends: { underWay: 0 } }),
    );
    expect(dispatcher.stats().appends).toMatchObject({ queued: 1_000, conflicts: 0, failures: 0 });
  });

  it('makes the consumer that the workers of a type share', async () => {
    const world = await setup();
    await leader(world);
    await world.ingest();
    const jsm = await jetstreamManager(world.nc);
    await eventually(async () => {
      const info = await jsm.consumers.info(world.names.streams.tasks, world.names.workConsumer(TYPE));
      expect(info.config.filter_subject).toBe(world.names.work(TYPE));
      expect(info.num_pending).toBe(1);
    });
  });

  it('queues no more than the ready window while nobody claims, the urgent ones first', async () => {
    const world = await setup({ readyWindowMin: 10, readyWindowMax: 10 });
    const late = await ingestMany(world, 50, { priority: 4 });
    const urgent = await ingestMany(world, 5, { priority: 1 });
    const dispatcher = await leader(world);
    await eventually(() => expect(world.count('QUEUED')).toBe(10));
    expect(urgent.map((id) => world.kindsOf(id).at(-1))).toEqual(urgent.map(() => 'QUEUED'));
    expect(dispatcher.stats().types[TYPE]).toMatchObject({ waiting: 45, ready: 10 });
    await world.work();
    await untilCompleted(world, 55);
    expectEachDoneOnce(world, [...late, ...urgent]);
  });

  it('announces how many tasks of each type wait', async () => {
    const world = await setup({ readyWindowMin: 3, readyWindowMax: 3 });
    const notices = world.nc.subscribe(world.names.backlog);
    await leader(world);
    await ingestMany(world, 8);
    for await (const notice of notices) {
      if (notice.json<{ waiting: Record<string, number> }>().waiting[TYPE] === 8) break;
    }
  });

  it('retries after the backoff, and dead-letters when no retry is left', async () => {
    const world = await setup();
    await world.work(() => 'fail');
    await leader(world);
    const id = await world.ingest({
      policy: { maxRetries: 2, backoff: { kind: 'list', delaysMs: [300, 500] }, jitter: 'none' },
    });
    await eventually(() => expect(world.kindsOf(id).at(-1)).toBe('DEAD_LETTER'));
    expect(world.kindsOf(id).filter((kind) => kind === 'QUEUED')).toHaveLength(3);
    expect(world.stateOf(id)).toMatchObject({ status: 'DEAD_LETTER', attempt: 3 });
    for (const [retry, delayMs] of [300, 500].entries()) {
      const lateMs =
        storedAtOf(world, id, 'QUEUED', retry + 1) - storedAtOf(world, id, 'FAILED', retry) - delayMs;
      expect(lateMs).toBeGreaterThanOrEqual(-2);
    }
  });

  it('queues a task again whose lease was lost', async () => {
    const world = await setup();
    await world.work(({ attempt }) => (attempt === 1 ? 'lose' : 'complete'));
    await leader(world);
    const id = await world.ingest();
    await untilCompleted(world, 1);
    expect(world.kindsOf(id)).toEqual([
      'INGESTED',
      'QUEUED',
      'CLAIMED',
      'RETRY_CLAIMED',
      'QUEUED',
      'CLAIMED',
      'PROCESSING',
      'COMPLETED',
    ]);
  });

  it('cancels instead of retrying when a cancellation was requested', async () => {
    const world = await setup();
    const worker = await world.work(() => 'hold');
    await leader(world);
    const id = await world.ingest();
    await eventually(() => expect(world.kindsOf(id).at(-1)).toBe('CLAIMED'));
    const meta = { eventId: crypto.randomUUID(), at: Date.now() };
    await world.execute(id, () => ({ ...meta, actor, kind: 'request_cancel' }));
    await world.execute(id, () => ({
      ...meta,
      eventId: crypto.randomUUID(),
      actor: worker.actor,
      kind: 'lose',
      attempt: 1,
      reason: 'worker_gone',
      dice: 0.5,
    }));
    await eventually(() => expect(world.kindsOf(id).at(-1)).toBe('CANCELLED'));
  });

  it('dead-letters a waiting task at its deadline', async () => {
    const world = await setup();
    await leader(world);
    const deadlineAt = Date.now() + 400;
    const id = await world.ingest({ deadlineAt, runAt: Date.now() + 60_000 });
    await eventually(() => expect(world.kindsOf(id)).toEqual(['INGESTED', 'DEAD_LETTER']));
    expect(storedAtOf(world, id, 'DEAD_LETTER')).toBeGreaterThanOrEqual(deadlineAt - 2);
  });

  it('queues a replayed task with the payload of its first life', async () => {
    const world = await setup();
    await world.work(({ round }) => (round === 1 ? 'fail' : 'complete'));
    await leader(world);
    const id = await world.ingest({ policy: { maxRetries: 0 }, payload: { clip: 'first' } });
    await eventually(() => expect(world.kindsOf(id).at(-1)).toBe('DEAD_LETTER'));
    await world.execute(id, () => ({ eventId: crypto.randomUUID(), at: Date.now(), actor, kind: 'replay' }));
    await untilCompleted(world, 1);
    const queued = world.book.get(id)?.filter(({ event }) => event.kind === 'QUEUED');
    expect(queued?.map(({ event }) => event.data)).toMatchObject([
      { payload: { clip: 'first' } },
      { payload: { clip: 'first' } },
    ]);
  });

  it('sends small payloads along, large ones by reference, and those it has not kept as well', async () => {
    const world = await setup({ inlinePayloadBytes: 100, payloadCacheBytes: 0 });
    await leader(world);
    const small = await world.ingest({ payload: 'x'.repeat(50) });
    const large = await world.ingest({ payload: 'x'.repeat(500) });
    await eventually(() => expect(world.count('QUEUED')).toBe(2));
    expect(world.stateOf(small)?.payload).toBe('x'.repeat(50));
    const [ingested, queued] = world.book.get(large) ?? [];
    expect(queued?.event.data).toMatchObject({ payloadSeq: ingested?.seq });
    expect(queued?.event.data).not.toHaveProperty('payload');
  });

  it('passes the trace of the submission on', async () => {
    const world = await setup();
    await leader(world);
    const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
    const id = await world.ingest({ trace });
    await eventually(() => expect(world.kindsOf(id).at(-1)).toBe('QUEUED'));
    expect(world.book.get(id)?.[1]?.event.trace).toBe(trace);
  });

  it('serves every tenant', async () => {
    const world = await setup();
    await world.work();
    await leader(world);
    for (const tenant of [TENANT, 'globex', 'initech']) await world.ingest({ tenant });
    await untilCompleted(world, 3);
  });
});
