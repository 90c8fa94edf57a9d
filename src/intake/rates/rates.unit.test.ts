import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { silentLogger } from '../../observe/log.ts';
import { allot, type Rate } from './allotment.ts';
import { SHARE_MS, SharedRate } from './shared-rate.ts';
import { createSubmissionRates } from './submission-rates.ts';

const rates = fc.record({
  ratePerSecond: fc.double({ min: 0.5, max: 2_000, noNaN: true }),
  burst: fc.integer({ min: 1, max: 3_000 }),
});

/** The most that was let through in any stretch of time, beyond what the rate gives in it. */
function excess(passedAt: readonly number[], { ratePerSecond }: Rate): number {
  let most = 0;
  // The stretch that exceeds most begins and ends with a passage: like the largest sum of a row of numbers.
  let running = 0;
  let before = 0;
  for (const at of passedAt) {
    running = Math.max(0, running - ((at - before) * ratePerSecond) / 1_000) + 1;
    most = Math.max(most, running);
    before = at;
  }
  return most;
}

describe('a bucket', () => {
  test('grants a burst, then one token after the other as time passes, and says when', () => {
    const rate = { ratePerSecond: 10, burst: 3 };
    const first = allot(0, { rate, now: 1_000, want: 5 });
    expect(first).toEqual({ granted: 3, fullAt: 1_300, nextInMs: 100 });
    expect(allot(first.fullAt, { rate, now: 1_099, want: 1 })).toMatchObject({ granted: 0, nextInMs: 1 });
    expect(allot(first.fullAt, { rate, now: 1_100, want: 5 })).toMatchObject({ granted: 1 });
  });

  test('that was emptied under a slower rate is at most empty under the new one', () => {
    const slow = allot(0, { rate: { ratePerSecond: 1, burst: 3_600 }, now: 0, want: 3_600 });
    const fast = { ratePerSecond: 1_000, burst: 1_000 };
    expect(allot(slow.fullAt, { rate: fast, now: 0, want: 1 })).toMatchObject({ granted: 0, nextInMs: 1 });
  });

  test('never grants more than burst + rate * t in any t, whoever asks in whatever pattern', () => {
    fc.assert(
      fc.property(
        rates,
        fc.array(
          fc.record({ afterMs: fc.integer({ min: 0, max: 2_000 }), want: fc.integer({ min: 1, max: 500 }) }),
          {
            maxLength: 60,
          },
        ),
        (rate, asks) => {
          let now = 1_000_000;
          let fullAt = 0;
          const passedAt: number[] = [];
          for (const { afterMs, want } of asks) {
            now += afterMs;
            const allotted = allot(fullAt, { rate, now, want });
            fullAt = allotted.fullAt;
            for (let n = 0; n < allotted.granted; n += 1) passedAt.push(now);
          }
          expect(excess(passedAt, rate)).toBeLessThanOrEqual(rate.burst + 0.001);
        },
      ),
    );
  });
});

/** Processes over one bucket, on a clock that only the test moves. */
function installation(rate: Rate, processes: number) {
  const world = { now: 1_000_000, fullAt: 0, down: false, asked: 0 };
  const bucket = {
    async change(change: (fullAt: number) => number) {
      world.asked += 1;
      await Promise.resolve();
      if (world.down) throw new Error('down');
      world.fullAt = change(world.fullAt);
    },
  };
  const parts = { bucket, now: () => world.now, monotonic: () => world.now, onOutage: () => undefined };
  return { world, shared: Array.from({ length: processes }, () => new SharedRate(rate, parts)) };
}

describe('a rate shared by processes', () => {
  test('is exceeded by no more than a share of each process, however submissions fall on them', async () => {
    await fc.assert(
      fc.asyncProperty(
        rates,
        fc.integer({ min: 1, max: 4 }),
        fc.array(
          fc.record({
            afterMs: fc.integer({ min: 0, max: 300 }),
            process: fc.nat(3),
            count: fc.integer({ min: 1, max: 80 }),
          }),
          { maxLength: 40 },
        ),
        async (rate, processes, loads) => {
          const { world, shared } = installation(rate, processes);
          const passedAt: number[] = [];
          for (const { afterMs, process, count } of loads) {
            world.now += afterMs;
            const one = shared[process % processes];
            if (one === undefined) continue;
            const verdicts = await Promise.all(Array.from({ length: count }, async () => one.take()));
            for (const verdict of verdicts) if (verdict === undefined) passedAt.push(world.now);
          }
          const share = Math.max(1, (rate.ratePerSecond * SHARE_MS) / 1_000);
          expect(excess(passedAt, rate)).toBeLessThanOrEqual(rate.burst + processes * share + 0.001);
        },
      ),
    );
  });

  test('is used up by a process alone: nothing is kept back for those that submit nothing', async () => {
    const rate = { ratePerSecond: 100, burst: 100 };
    const { world, shared } = installation(rate, 3);
    let passed = 0;
    for (let ms = 0; ms < 10_000; ms += 5) {
      world.now += 5;
      if ((await shared[0]?.take()) === undefined) passed += 1;
    }
    expect(passed).toBeGreaterThan(1_050);
  });

  test('asks the bucket a few times a second, not once a submission', async () => {
    const { world, shared } = installation({ ratePerSecond: 10_000, burst: 10_000 }, 1);
    for (let n = 0; n < 8_000; n += 1) {
      if (n % 8 === 0) world.now += 1;
      expect(await shared[0]?.take()).toBeUndefined();
    }
    expect(world.asked).toBeLessThan(50);
  });

  test('refuses from memory while it knows that nothing is left', async () => {
    const { world, shared } = installation({ ratePerSecond: 1, burst: 1 }, 1);
    await shared[0]?.take();
    expect(await shared[0]?.take()).toEqual({ retryAfterMs: 1_000 });
    const { asked } = world;
    for (let n = 0; n < 100; n += 1) expect(await shared[0]?.take()).toBeDefined();
    expect(world.asked).toBe(asked);
  });

  test('is kept by each process alone while the bucket does not answer', async () => {
    const { world, shared } = installation({ ratePerSecond: 10, burst: 10 }, 2);
    world.down = true;
    const verdicts = await Promise.all(
      shared.flatMap((one) => Array.from({ length: 30 }, async () => one.take())),
    );
    expect(verdicts.filter((verdict) => verdict === undefined)).toHaveLength(20);
  });
});

describe('submission rates', () => {
  const setup = () => {
    const now = 1_000_000;
    const buckets = new Map<string, number>();
    return createSubmissionRates({
      tenants: {
        get: (name) => ({
          name,
          createdAt: '2026-01-01T00:00:00Z',
          ...(name === 'free' ? {} : { submission: { ratePerSecond: 10, burst: 5 } }),
          types: { small: { submission: { ratePerSecond: 1, burst: 2 } } },
        }),
      },
      types: { get: (type) => ({ type, ...(type === 'rare' ? { submission: { ratePerSecond: 1 } } : {}) }) },
      bucket: (key) => ({
        async change(change) {
          buckets.set(key, change(buckets.get(key) ?? 0));
        },
      }),
      now: () => now,
      monotonic: () => now,
      logger: silentLogger,
    });
  };
  const passed = async (of: ReturnType<typeof setup>, tenant: string, type: string, times: number) => {
    const verdicts = await Promise.all(Array.from({ length: times }, async () => of.take(tenant, type)));
    return verdicts.filter((verdict) => verdict === undefined).length;
  };

  test('a tenant has one rate over all types, and what is refused for its type costs it nothing', async () => {
    const of = setup();
    expect(await passed(of, 'acme', 'small', 20)).toBe(2);
    expect(await passed(of, 'acme', 'mail', 20)).toBe(3);
    expect(await of.take('acme', 'mail')).toMatchObject({
      tenant: 'acme',
      type: undefined,
      ratePerSecond: 10,
      burst: 5,
    });
    expect(of.closed('acme', 'small').map(({ type }) => type)).toEqual(['small', undefined]);
    expect(of.closed('free', 'mail')).toEqual([]);
  });

  test('a rate of the type holds for each tenant by itself', async () => {
    const of = setup();
    expect(await passed(of, 'free', 'rare', 5)).toBe(1);
    expect(await passed(of, 'acme', 'rare', 5)).toBe(1);
    expect(await passed(of, 'free', 'mail', 500)).toBe(500);
  });
});
