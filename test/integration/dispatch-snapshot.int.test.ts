import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { Objm } from '@nats-io/obj';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createDispatcher, type Dispatcher } from '../../src/dispatch/dispatcher.ts';
import { type Logger, silentLogger } from '../../src/observe/log.ts';
import { eventually } from '../support/eventually.ts';
import { testNamespace } from '../support/servers.ts';
import { openTaskWorld, type TaskWorld } from '../support/task-world.ts';

let worlds = 0;
let world: TaskWorld;
let dispatchers: Dispatcher[];
const WRITTEN = 'a snapshot of the memory is written';
const REPLAYED = 'the log is replayed';
const PASSED_OVER = 'a snapshot is passed over';

beforeEach(async () => {
  worlds += 1;
  dispatchers = [];
  world = await openTaskWorld(testNamespace(import.meta.url).replace(/_$/, `${worlds}_`), {
    // Long enough for a leader that the machine holds up: nobody takes over but from one that has stopped.
    leaderLeaseMs: 20_000,
    snapshotEveryMs: 100,
    snapshotMinEvents: 50,
    readyWindowMin: 5,
    readyWindowMax: 5,
  });
});
afterEach(async () => {
  for (const dispatcher of dispatchers) await dispatcher.stop();
  await world.stop();
});

type Entry = Readonly<Record<string, unknown>>;

/** A dispatcher and what it has logged. */
async function dispatch(over: { snapshotMinEvents?: number } = {}) {
  const entries: (readonly [string, Entry])[] = [];
  const keep = (fields: object, message: string): void => void entries.push([message, fields as Entry]);
  const logger: Logger = { ...silentLogger, info: keep, warn: keep, error: keep };
  const { nc, log, clock } = await world.connect();
  const config = { ...world.config, ...over };
  const dispatcher = createDispatcher({ nc, log, names: world.names, config, clock, logger });
  dispatchers.push(dispatcher);
  await dispatcher.start();
  const logged = (message: string): Entry[] =>
    entries.filter(([text]) => text === message).map(([, fields]) => fields);
  return {
    dispatcher,
    logged,
    /** `upTo`: an event that the last one must know. */
    whenWritten: (count = 1, upTo = 0) =>
      eventually(() => {
        const written = logged(WRITTEN);
        return written.length >= count && Number(written.at(-1)?.['position']) >= upTo;
      }),
  };
}

const NEVER = { snapshotMinEvents: 1_000_000 };

async function ingestMany(count: number): Promise<string[]> {
  return Promise.all(Array.from({ length: count }, () => world.ingest()));
}

async function finishAll(ids: readonly string[]): Promise<void> {
  await world.work();
  await eventually(() => expect(world.count('COMPLETED')).toBe(ids.length), { timeoutMs: 60_000 });
  for (const id of ids)
    expect(world.kindsOf(id)).toEqual(['INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'COMPLETED']);
}

/** Less than the last fifty events may be missing, and more than those of the first hundred are there. */
const SECOND_KNOWS = 151;

/** Two snapshots of a dispatcher that is gone, and some events that are in neither. */
async function twoSnapshots(): Promise<string[]> {
  const { dispatcher, whenWritten } = await dispatch();
  const ids = await ingestMany(100);
  await whenWritten(1);
  ids.push(...(await ingestMany(100)));
  // Both may have been written before, when the machine took its time over the first hundred.
  await whenWritten(2, SECOND_KNOWS);
  await dispatcher.stop();
  ids.push(...(await ingestMany(10)));
  return ids;
}

const store = () => new Objm(jetstream(world.nc)).open(world.names.snapshots);
const slots = (): string[] => [0, 1].map((slot) => world.names.snapshot(world.config.dispatchGroup, slot));

/** The slot of the later snapshot first. */
async function byAge(): Promise<string[]> {
  const positions = await Promise.all(
    slots().map(async (name) => Number((await (await store()).info(name))?.metadata?.['position'])),
  );
  return (positions[0] ?? 0) > (positions[1] ?? 0) ? slots() : slots().reverse();
}

/** Puts something else in the place of a snapshot, that says to be the same. */
async function replace(name: string, change: (bytes: Uint8Array) => Uint8Array): Promise<void> {
  const snapshots = await store();
  const bytes = (await snapshots.getBlob(name)) ?? new Uint8Array();
  const metadata = (await snapshots.info(name))?.metadata ?? {};
  await snapshots.putBlob({ name, metadata }, change(bytes));
}

describe('a dispatcher that starts', () => {
  it('goes on from the last snapshot, reads only what came after, and finishes everything once', async () => {
    const ids = await twoSnapshots();
    const { logged } = await dispatch(NEVER);
    expect(logged(REPLAYED)).toMatchObject([{ liveTasks: 210 }]);
    expect(logged(REPLAYED)[0]?.['snapshot']).toBeGreaterThanOrEqual(SECOND_KNOWS);
    await finishAll(ids);
  });

  it('takes the snapshot before when the last one is damaged, and reads the log when both are', async () => {
    const ids = await twoSnapshots();
    const [last = '', before = ''] = await byAge();
    await replace(last, (bytes) => bytes.subarray(0, bytes.length - 7));
    const second = await dispatch(NEVER);
    expect(second.logged(PASSED_OVER)).toMatchObject([{ snapshot: last }]);
    expect(second.logged(REPLAYED)).toMatchObject([{ liveTasks: 210, snapshot: expect.any(Number) }]);
    await second.dispatcher.stop();
    await replace(before, (bytes) => bytes.map((byte, at) => (at === 200 ? byte ^ 4 : byte)));
    const third = await dispatch(NEVER);
    expect(third.logged(PASSED_OVER)).toHaveLength(2);
    expect(third.logged(REPLAYED)).toMatchObject([{ liveTasks: 210, snapshot: undefined }]);
    await finishAll(ids);
  });

  it('reads the log when the snapshots were dropped, and writes a new one', async () => {
    const ids = await twoSnapshots();
    await (await jetstreamManager(world.nc)).streams.delete(`OBJ_${world.names.snapshots}`);
    const { logged, whenWritten } = await dispatch();
    expect(logged(REPLAYED)).toMatchObject([{ liveTasks: 210, snapshot: undefined }]);
    expect(logged(PASSED_OVER)).toEqual([]);
    await whenWritten();
    await finishAll(ids);
  });

  it('reads the log when the pieces of a snapshot are lost', async () => {
    const ids = await twoSnapshots();
    const jsm = await jetstreamManager(world.nc);
    await jsm.streams.purge(`OBJ_${world.names.snapshots}`, { filter: `$O.${world.names.snapshots}.C.>` });
    const { logged } = await dispatch(NEVER);
    expect(logged(PASSED_OVER)).toHaveLength(2);
    expect(logged(REPLAYED)).toMatchObject([{ liveTasks: 210, snapshot: undefined }]);
    await finishAll(ids);
  });

  it('does not trust a snapshot that the log has aged past: the gap would hide what happened in it', async () => {
    await twoSnapshots();
    const { firstSeq, lastSeq } = await world.log.bounds();
    expect(firstSeq).toBe(1);
    const jsm = await jetstreamManager(world.nc);
    await jsm.streams.purge(world.names.streams.tasks, { seq: lastSeq - 4 });
    const { logged } = await dispatch(NEVER);
    expect(logged(PASSED_OVER)).toHaveLength(2);
    expect(logged(REPLAYED)).toMatchObject([{ liveTasks: 5, snapshot: undefined }]);
  });
});

describe('dispatchers side by side', () => {
  it('start from what another one has written', async () => {
    const leader = await dispatch(NEVER);
    await leader.dispatcher.whenLeader();
    const standby = await dispatch();
    await ingestMany(60);
    await standby.whenWritten();
    expect(standby.logged(WRITTEN)[0]).toMatchObject({ leads: false });
    await leader.dispatcher.stop();
    await standby.dispatcher.whenLeader();
    const third = await dispatch(NEVER);
    expect(third.logged(REPLAYED)).toMatchObject([{ liveTasks: 60, snapshot: expect.any(Number) }]);
  });
});
