import { randomUUID } from 'node:crypto';
import { jetstreamManager } from '@nats-io/jetstream';
import { describe, expect, it, type TestContext } from 'vitest';
import { createDispatcher, type DispatcherParts } from '../../src/dispatch/dispatcher.ts';
import type { Recorded } from '../../src/domain/events.ts';
import type { OpenedLog } from '../../src/log/open.ts';
import { createLogger } from '../../src/observe/log.ts';
import type { Config } from '../../src/platform/config.ts';
import { eventually } from '../support/eventually.ts';
import { gate } from '../support/gate.ts';
import { testNamespace } from '../support/servers.ts';
import { openTaskWorld, type TaskWorld, TYPE } from '../support/task-world.ts';

const logger = createLogger({ logLevel: 'error' });
/** Long enough for a leader that the machine holds up: nobody takes over but from one that has stopped. */
const LEASE_MS = 20_000;
/** Longer than any test. */
const ENDLESS_LEASE_MS = 600_000;
/** Of a leader whose death is to be found. */
const SHORT_LEASE_MS = 1_500;
let worlds = 0;

type OwnWorld = TaskWorld & Pick<TestContext, 'onTestFinished'>;

/** A world of one test, which ends with it. */
async function setup({ onTestFinished }: TestContext, settings: Partial<Config> = {}): Promise<OwnWorld> {
  worlds += 1;
  const prefix = testNamespace(import.meta.url).replace(/_$/, `${worlds}_`);
  const world = await openTaskWorld(prefix, { leaderLeaseMs: LEASE_MS, ...settings });
  onTestFinished(() => world.stop());
  return { ...world, onTestFinished };
}

/** A dispatcher on a connection of its own, started. `kill` cuts it off without a word, as the death of its process would. */
async function dispatch(
  world: OwnWorld,
  over: Partial<DispatcherParts['config']> = {},
  through: (log: OpenedLog) => OpenedLog = (log) => log,
) {
  const { nc, log, clock } = await world.connect();
  const config = { ...world.config, ...over };
  const dispatcher = createDispatcher({ nc, log: through(log), names: world.names, config, clock, logger });
  world.onTestFinished(() => dispatcher.stop());
  await dispatcher.start();
  return { dispatcher, kill: () => nc.close() };
}

const ingestMany = (world: TaskWorld, count: number, over: Parameters<TaskWorld['ingest']>[0] = {}) =>
  Promise.all(Array.from({ length: count }, () => world.ingest(over)));

const untilCompleted = (world: TaskWorld, count: number) =>
  eventually(() => expect(world.count('COMPLETED')).toBe(count), { timeoutMs: 60_000 });

function expectQueuedOncePerAttempt(world: TaskWorld): void {
  for (const [id, events] of world.book) {
    const kinds = events.map(({ event }) => event.kind);
    const queued = kinds.filter((kind) => kind === 'QUEUED').length;
    expect({ id, queued }).toEqual({ id, queued: kinds.filter((kind) => kind === 'CLAIMED').length });
  }
}

const firstQueuedAfter = (world: TaskWorld, seq: number): Recorded | undefined =>
  [...world.book.values()]
    .flat()
    .filter((recorded) => recorded.event.kind === 'QUEUED' && recorded.seq > seq)
    .sort((one, other) => one.seq - other.seq)[0];

const lastQueued = (world: TaskWorld): Recorded | undefined =>
  [...world.book.values()]
    .flat()
    .filter(({ event }) => event.kind === 'QUEUED')
    .sort((one, other) => other.seq - one.seq)[0];

describe('failover of the dispatcher', () => {
  it('rebuilds from the log after a restart in the middle, and finishes everything once', async (context) => {
    const world = await setup(context);
    await world.work(({ attempt, id }) => (attempt === 1 && id.startsWith('0') ? 'fail' : 'complete'));
    const first = await dispatch(world);
    const ids = await ingestMany(world, 1_000, { policy: { backoff: { kind: 'fixed', baseMs: 300 } } });
    await eventually(() => expect(world.count('COMPLETED')).toBeGreaterThan(100));
    await first.dispatcher.stop();
    const more = await ingestMany(world, 200);
    await dispatch(world);
    await untilCompleted(world, ids.length + more.length);
    expectQueuedOncePerAttempt(world);
  });

  it('hands over to a hot standby when it is stopped, long before its lease ends', async (context) => {
    const world = await setup(context, {
      leaderLeaseMs: ENDLESS_LEASE_MS,
      readyWindowMin: 5,
      readyWindowMax: 5,
    });
    const first = await dispatch(world);
    await first.dispatcher.whenLeader();
    const second = await dispatch(world);
    await ingestMany(world, 200);
    await eventually(() => expect(world.count('QUEUED')).toBe(5));
    expect(second.dispatcher.isLeader()).toBe(false);
    const before = lastQueued(world)?.seq ?? 0;
    const leading = second.dispatcher.whenLeader();
    await first.dispatcher.stop();
    await leading;
    await world.work();
    await world.ingest();
    await eventually(() => expect(firstQueuedAfter(world, before)).toBeDefined());
  });

  it('takes over after the lease when the leader dies without a word', async (context) => {
    const world = await setup(context, { leaderLeaseMs: SHORT_LEASE_MS });
    await world.work();
    const first = await dispatch(world);
    await first.dispatcher.whenLeader();
    const second = await dispatch(world);
    await ingestMany(world, 50);
    await untilCompleted(world, 50);
    await first.kill();
    await world.ingest();
    await second.dispatcher.whenLeader();
    await untilCompleted(world, 51);
    await eventually(() => expect(first.dispatcher.isLeader()).toBe(false));
  });

  it('does not let a standby decide', async (context) => {
    const world = await setup(context);
    const first = await dispatch(world);
    await first.dispatcher.whenLeader();
    const second = await dispatch(world);
    await world.work();
    await ingestMany(world, 100);
    await untilCompleted(world, 100);
    const { lastSeq } = await world.log.bounds();
    await eventually(() => expect(second.dispatcher.stats().position).toBe(lastSeq));
    expect(second.dispatcher.stats()).toMatchObject({
      phase: 'following',
      liveTasks: 0,
      appends: { queued: 0, conflicts: 0 },
    });
  });

  it('doubles nothing when two dispatchers lead at once', async (context) => {
    const world = await setup(context);
    await world.work(({ attempt, id }) => (attempt === 1 && id < '4' ? 'fail' : 'complete'));
    // About this task neither appends before both have decided.
    const contested = randomUUID();
    let decided = 0;
    const both = gate();
    const contesting = (log: OpenedLog): OpenedLog => ({
      ...log,
      async append(event, ...fence) {
        if (event.taskId === contested) {
          decided += 1;
          if (decided === 2) both.open();
          await both.opened;
        }
        return log.append(event, ...fence);
      },
    });
    // Different groups: both lead, and both decide about every task.
    const one = await dispatch(world, { dispatchGroup: 'one' }, contesting);
    const other = await dispatch(world, { dispatchGroup: 'other' }, contesting);
    await Promise.all([one.dispatcher.whenLeader(), other.dispatcher.whenLeader()]);
    const policy = { backoff: { kind: 'fixed', baseMs: 200 } } as const;
    await world.ingest({ taskId: contested, policy });
    await ingestMany(world, 1_000, { policy });
    await untilCompleted(world, 1_001);
    expectQueuedOncePerAttempt(world);
    const [a, b] = [one.dispatcher.stats().appends, other.dispatcher.stats().appends];
    console.log(`two leaders: ${a.queued} + ${b.queued} queued, ${a.conflicts} + ${b.conflicts} conflicts`);
    expect(a.conflicts + b.conflicts).toBeGreaterThan(0);
  });
});

describe('delays', () => {
  it('loses and doubles none of 2 000 tasks due in the same second', async (context) => {
    const world = await setup(context);
    const { dispatcher } = await dispatch(world);
    await dispatcher.whenLeader();
    await world.work();
    const base = Date.now() + 10_000;
    await Promise.all(Array.from({ length: 2_000 }, (_, n) => world.ingest({ runAt: base + (n % 1_000) })));
    await untilCompleted(world, 2_000);
    expectQueuedOncePerAttempt(world);
    const lateMs = [...world.book.values()]
      .map((events) => (events[1]?.storedAt ?? 0) - dueAtOf(events[0]))
      .sort((a, b) => a - b);
    const { lateness } = dispatcher.stats();
    console.log(
      `2000 due in one second: released by lateness ${JSON.stringify(lateness)}, queued ${lateMs.at(-1)} ms late at most`,
    );
    expect(lateMs[0]).toBeGreaterThanOrEqual(-2);
    const early = [...world.book.values()].filter(([ingested]) => (ingested?.storedAt ?? base) < base);
    // They have waited, or this would prove nothing.
    expect(early.length).toBeGreaterThan(1_000);
  });

  // They wait more than they compute, each in a world of its own.
  it.concurrent('runs a task at its runAt and not before, and is called by the alarm', async (context) => {
    const world = await setup(context);
    const { dispatcher } = await dispatch(world);
    await dispatcher.whenLeader();
    const dueAts = [50, 700, 1_000, 5_000].map((delayMs) => Date.now() + delayMs);
    const ids = await Promise.all(dueAts.map((runAt) => world.ingest({ runAt })));
    await eventually(() => expect(world.count('QUEUED')).toBe(ids.length));
    for (const [index, id] of ids.entries()) {
      const lateMs = (world.book.get(id)?.[1]?.storedAt ?? 0) - (dueAts[index] ?? 0);
      expect(lateMs).toBeGreaterThanOrEqual(-2);
    }
    await eventually(() => expect(dispatcher.stats().alarm.rung).toBeGreaterThan(0));
    expect(dispatcher.stats().alarm.failed).toBe(0);
  });

  it.concurrent('loses none when TIMERS is purged, sees that nothing rang, and is called again', async (context) => {
    const world = await setup(context);
    const { dispatcher } = await dispatch(world);
    await dispatcher.whenLeader();
    const runAt = Date.now() + 6_000;
    const id = await world.ingest({ runAt });
    const later = await world.ingest({ runAt: runAt + 8_000 });
    await eventually(() => expect(dispatcher.stats().alarm.set).toBe(1));
    await (await jetstreamManager(world.nc)).streams.purge(world.names.streams.timers);
    await eventually(() => expect(world.kindsOf(id).at(-1)).toBe('QUEUED'));
    expect(dispatcher.stats().alarm.rung).toBe(0);
    await eventually(() => expect(dispatcher.stats().alarm).toMatchObject({ set: 2, missed: 1 }));
    await eventually(() => expect(world.kindsOf(later).at(-1)).toBe('QUEUED'));
    await eventually(() => expect(dispatcher.stats().alarm.rung).toBe(1));
  });

  it.concurrent('runs a task that comes due while TIMERS does not exist', async (context) => {
    const world = await setup(context);
    const { dispatcher } = await dispatch(world);
    await dispatcher.whenLeader();
    await (await jetstreamManager(world.nc)).streams.delete(world.names.streams.timers);
    const id = await world.ingest({ runAt: Date.now() + 500 });
    await eventually(() => expect(world.kindsOf(id).at(-1)).toBe('QUEUED'));
    expect(dispatcher.stats().alarm.rung).toBe(0);
  });

  it.concurrent('queues a task whose runAt lies beyond the hot window, and after a restart as well', async (context) => {
    const world = await setup(context, { hotWindowHours: 10 / 3_600 });
    await world.work();
    const first = await dispatch(world);
    await first.dispatcher.whenLeader();
    const near = await world.ingest({ runAt: Date.now() + 14_000 });
    const far = await world.ingest({ runAt: Date.now() + 24_000, payload: 'kept' });
    await eventually(() => expect(world.kindsOf(near).at(-1)).toBe('COMPLETED'), { timeoutMs: 60_000 });
    await first.dispatcher.stop();
    await dispatch(world);
    await eventually(() => expect(world.kindsOf(far).at(-1)).toBe('COMPLETED'), { timeoutMs: 60_000 });
    expect(world.kindsOf(far).filter((kind) => kind === 'QUEUED')).toHaveLength(1);
    expect(world.kindsOf(far).filter((kind) => kind === 'CARRIED').length).toBeGreaterThan(2);
    expect(world.stateOf(far)?.payload).toBe('kept');
  });

  it.concurrent('keeps a delay over a restart', async (context) => {
    const world = await setup(context);
    const first = await dispatch(world);
    await first.dispatcher.whenLeader();
    const runAt = Date.now() + 6_000;
    const id = await world.ingest({ runAt });
    await eventually(() => expect(first.dispatcher.stats().types[TYPE]?.delayed).toBe(1));
    await first.dispatcher.stop();
    await dispatch(world);
    await eventually(() => expect(world.kindsOf(id).at(-1)).toBe('QUEUED'));
    const lateMs = (world.book.get(id)?.[1]?.storedAt ?? 0) - runAt;
    expect(lateMs).toBeGreaterThanOrEqual(-2);
  });
});

const dueAtOf = (recorded: Recorded | undefined): number =>
  recorded?.event.kind === 'INGESTED' ? (recorded.event.data.runAt ?? 0) : Number.NaN;
