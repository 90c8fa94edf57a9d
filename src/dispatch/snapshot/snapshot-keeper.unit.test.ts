import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { silentLogger } from '../../observe/log.ts';
import { SnapshotKeeper } from './snapshot-keeper.ts';
import type { StoredSnapshot } from './snapshot-store.ts';

const EVERY_MS = 1_000;
const LEAST_EVENTS = 100;

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance'] }));
afterEach(() => void vi.useRealTimers());

/** Keepers of dispatchers that all stand at `log.position`, and the store that they share. */
function setup() {
  const log = { position: 500 };
  const stored: StoredSnapshot[] = [];
  const keeper = async ({ leads, writeMs = 0 }: { leads: boolean; writeMs?: number }) => {
    const made = new SnapshotKeeper({
      store: {
        list: async () => stored.slice(-1),
        async *read() {},
        write: async (_blocks, position) => {
          vi.advanceTimersByTime(writeMs);
          stored.push({ name: 'default.0', position, bytes: 1 });
          return 1;
        },
      },
      log: { readEvent: async () => undefined },
      source: () => ({
        position: log.position,
        rows: () => [],
        header: () => {
          throw new Error('the store of this test reads no blocks');
        },
      }),
      leads: () => leads,
      config: { snapshotEveryMs: EVERY_MS, snapshotMinEvents: LEAST_EVENTS },
      clock: { now: () => 0 },
      logger: silentLogger,
    });
    await made.start();
    keepers.push(made);
    return made;
  };
  return { log, stored, keeper };
}
const keepers: SnapshotKeeper[] = [];
afterEach(async () => {
  for (const keeper of keepers.splice(0)) await keeper.stop();
});

it('a standby writes when its time has come, and a leader only when no standby has for twice as long', async () => {
  const { log, stored, keeper } = setup();
  const leader = await keeper({ leads: true });
  const standby = await keeper({ leads: false });
  vi.advanceTimersByTime(EVERY_MS - 1);
  expect(await standby.runOnce()).toBe(false);
  vi.advanceTimersByTime(1);
  expect(await leader.runOnce()).toBe(false);
  expect(await standby.runOnce()).toBe(true);
  log.position += LEAST_EVENTS;
  vi.advanceTimersByTime(EVERY_MS);
  // Its own patience has ended, but it finds what the standby has written.
  expect(await leader.runOnce()).toBe(false);
  await standby.stop();
  vi.advanceTimersByTime(2 * EVERY_MS);
  expect(await leader.runOnce()).toBe(true);
  expect(stored.map(({ position }) => position)).toEqual([500, 600]);
});

it('nobody writes one that would save too little', async () => {
  const { log, keeper } = setup();
  const standby = await keeper({ leads: false });
  vi.advanceTimersByTime(EVERY_MS);
  expect(await standby.runOnce()).toBe(true);
  log.position += LEAST_EVENTS - 1;
  vi.advanceTimersByTime(10 * EVERY_MS);
  expect(await standby.runOnce()).toBe(false);
  log.position += 1;
  expect(await standby.runOnce()).toBe(true);
});

it('at most a tenth of the time is spent on writing', async () => {
  const { log, keeper } = setup();
  const standby = await keeper({ leads: false, writeMs: 800 });
  vi.advanceTimersByTime(EVERY_MS);
  expect(await standby.runOnce()).toBe(true);
  log.position += LEAST_EVENTS;
  vi.advanceTimersByTime(7_999);
  expect(await standby.runOnce()).toBe(false);
  vi.advanceTimersByTime(1);
  expect(await standby.runOnce()).toBe(true);
});

it('one is written again when all were dropped', async () => {
  const { log, stored, keeper } = setup();
  const standby = await keeper({ leads: false });
  vi.advanceTimersByTime(EVERY_MS);
  expect(await standby.runOnce()).toBe(true);
  stored.splice(0);
  log.position += LEAST_EVENTS;
  vi.advanceTimersByTime(EVERY_MS);
  expect(await standby.runOnce()).toBe(true);
});
