import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLogger } from '../observe/log.ts';
import { Crowd } from './crowd.ts';

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

function setup(limit = 100) {
  let pending: number | Error = 0;
  let looks = 0;
  const said: string[] = [];
  const crowd = new Crowd({
    limit,
    pending: async () => {
      looks += 1;
      if (pending instanceof Error) throw pending;
      return pending;
    },
    clock: { now: () => Date.now() },
    logger: { ...silentLogger, warn: (_fields: unknown, text: string) => said.push(text) } as never,
  });
  let seq = 0;
  return {
    crowd,
    said,
    looks: () => looks,
    waiting: (now: number | Error) => {
      pending = now;
    },
    sendBack: (tenant: string, count: number) => {
      for (let i = 0; i < count; i += 1) {
        seq += 1;
        crowd.sentBack(tenant, seq, 60_000);
      }
    },
  };
}

describe('it is crowded', () => {
  test('from the limit on until 80 % of it, and says both', async () => {
    const { crowd, waiting, sendBack, said } = setup();
    sendBack('flood', 5);
    const crowdedAt = async (pending: number) => {
      waiting(pending);
      await vi.advanceTimersByTimeAsync(1_000);
      return crowd.isCrowdedBy('flood');
    };
    expect(await crowdedAt(99)).toBe(false);
    expect(said).toEqual([]);
    expect(await crowdedAt(100)).toBe(true);
    expect(await crowdedAt(81)).toBe(true);
    expect(said).toEqual([expect.stringMatching(/^too many/)]);
    expect(await crowdedAt(80)).toBe(false);
    expect(said).toEqual([expect.stringMatching(/^too many/), expect.stringMatching(/^fewer/)]);
    expect(await crowdedAt(99)).toBe(false);
  });

  test('by the tenant that floods, not by a modest one', async () => {
    const { crowd, waiting, sendBack } = setup();
    sendBack('flood', 90);
    sendBack('modest', 9);
    waiting(100);
    expect(await crowd.isCrowdedBy('flood')).toBe(true);
    expect(await crowd.isCrowdedBy('modest')).toBe(false);
  });

  test('by nobody whose messages have had their time to come again', async () => {
    const { crowd, waiting, sendBack } = setup();
    sendBack('flood', 90);
    waiting(100);
    await vi.advanceTimersByTimeAsync(61_000);
    expect(await crowd.isCrowdedBy('flood')).toBe(false);
  });
});

describe('it looks', () => {
  test('once for all that ask at once, and again after a second', async () => {
    const { crowd, looks } = setup(1_600);
    await Promise.all(Array.from({ length: 50 }, () => crowd.isCrowdedBy('a')));
    await crowd.isCrowdedBy('a');
    expect(looks()).toBe(1);
    await vi.advanceTimersByTimeAsync(5_000);
    expect(looks()).toBe(1);
    await crowd.isCrowdedBy('a');
    expect(looks()).toBe(2);
  });

  test('sooner when it was asked a sixteenth of the limit', async () => {
    const { crowd, looks } = setup(160);
    for (let i = 0; i < 11; i += 1) await crowd.isCrowdedBy('a');
    expect(looks()).toBe(1);
    await crowd.isCrowdedBy('a');
    expect(looks()).toBe(2);
  });

  test('by itself while it is crowded, so that the end is told although nobody asks', async () => {
    const { crowd, waiting, looks, said } = setup();
    waiting(100);
    await crowd.isCrowdedBy('a');
    await vi.advanceTimersByTimeAsync(2_000);
    expect(looks()).toBe(3);
    waiting(0);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(looks()).toBe(4);
    expect(said).toHaveLength(2);
  });

  test('no more once it is stopped', async () => {
    const { crowd, waiting, looks } = setup();
    waiting(100);
    await crowd.isCrowdedBy('a');
    await crowd.stop();
    await vi.advanceTimersByTimeAsync(10_000);
    expect(looks()).toBe(1);
  });
});

test('while nothing can be seen, what was seen last stands', async () => {
  const { crowd, waiting, sendBack } = setup();
  sendBack('flood', 9);
  waiting(100);
  expect(await crowd.isCrowdedBy('flood')).toBe(true);
  waiting(new Error('no responders'));
  await vi.advanceTimersByTimeAsync(3_000);
  expect(await crowd.isCrowdedBy('flood')).toBe(true);
  await crowd.stop();
});
