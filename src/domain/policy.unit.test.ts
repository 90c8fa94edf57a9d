import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  type Backoff,
  backoffMs,
  DEFAULT_POLICY,
  type Policy,
  PolicyOverrideSchema,
  PolicySchema,
  policyOverride,
  resolvePolicy,
} from './policy.ts';

const backoffs: fc.Arbitrary<Backoff> = fc.oneof(
  fc.record({
    kind: fc.constant('exponential' as const),
    baseMs: fc.integer({ min: 1, max: 60_000 }),
    factor: fc.double({ min: 1, max: 10, noNaN: true }),
  }),
  fc.record({ kind: fc.constant('linear' as const), baseMs: fc.integer({ min: 1, max: 60_000 }) }),
  fc.record({ kind: fc.constant('fixed' as const), baseMs: fc.integer({ min: 1, max: 60_000 }) }),
  fc.record({
    kind: fc.constant('list' as const),
    delaysMs: fc.array(fc.integer({ min: 0, max: 60_000 }), { minLength: 1, maxLength: 32 }),
  }),
);
const policies: fc.Arbitrary<Policy> = fc.record({
  maxRetries: fc.integer({ min: 0, max: 100 }),
  maxLost: fc.integer({ min: 0, max: 100 }),
  backoff: backoffs,
  backoffCapMs: fc.integer({ min: 1, max: 604_800_000 }),
  backoffFloorMs: fc.integer({ min: 0, max: 60_000 }),
  jitter: fc.constantFrom('full', 'none'),
  timeoutMs: fc.integer({ min: 1, max: 604_800_000 }),
  notRetryable: fc.array(fc.string({ minLength: 1, maxLength: 20 }), { maxLength: 3 }),
});
const retries = fc.integer({ min: 1, max: 101 });
const dice = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
const floorOf = (policy: Policy): number => Math.min(policy.backoffFloorMs, policy.backoffCapMs);

describe('a delay', () => {
  test('is a whole number of milliseconds between floor and cap, whatever the policy, the retry and the dice', () => {
    fc.assert(
      fc.property(policies, retries, dice, (policy, retry, roll) => {
        const delay = backoffMs(policy, retry, roll);
        expect(Number.isInteger(delay)).toBe(true);
        expect(delay).toBeGreaterThanOrEqual(floorOf(policy));
        expect(delay).toBeLessThanOrEqual(policy.backoffCapMs);
      }),
    );
  });

  test('without jitter never shrinks from one retry to the next, unless a list says so', () => {
    const growing = policies.filter((policy) => policy.backoff.kind !== 'list');
    fc.assert(
      fc.property(growing, retries, dice, (policy, retry, roll) => {
        const steady = { ...policy, jitter: 'none' as const };
        expect(backoffMs(steady, retry + 1, roll)).toBeGreaterThanOrEqual(backoffMs(steady, retry, roll));
      }),
    );
  });

  test('with full jitter is never longer than without, and grows with the dice', () => {
    fc.assert(
      fc.property(policies, retries, dice, dice, (policy, retry, a, b) => {
        const full = { ...policy, jitter: 'full' as const };
        const none = backoffMs({ ...policy, jitter: 'none' }, retry, a);
        const [low, high] = [Math.min(a, b), Math.max(a, b)].map((roll) => backoffMs(full, retry, roll));
        expect(low).toBeLessThanOrEqual(high ?? Number.NaN);
        expect(high).toBeLessThanOrEqual(none);
      }),
    );
  });

  test.each<[Backoff, number[]]>([
    [{ kind: 'exponential', baseMs: 1_000, factor: 2 }, [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]],
    [{ kind: 'exponential', baseMs: 100, factor: 1.5 }, [100, 150, 225, 338, 506, 759]],
    [{ kind: 'linear', baseMs: 3_000 }, [3_000, 6_000, 9_000, 10_000, 10_000, 10_000]],
    [{ kind: 'fixed', baseMs: 700 }, [700, 700, 700, 700, 700, 700]],
    [{ kind: 'list', delaysMs: [5_000, 0, 20_000] }, [5_000, 50, 10_000, 10_000, 10_000, 10_000]],
  ])('follows %j', (backoff, delays) => {
    const policy: Policy = {
      ...DEFAULT_POLICY,
      backoff,
      jitter: 'none',
      backoffCapMs: 10_000,
      backoffFloorMs: 50,
    };
    expect(delays.map((_, index) => backoffMs(policy, index + 1, 0.9))).toEqual(delays);
  });

  test('with full jitter spreads evenly from the floor to the computed delay', () => {
    expect([0, 0.5, 0.999].map((roll) => backoffMs(DEFAULT_POLICY, 1, roll))).toEqual([100, 550, 999]);
  });
});

describe('a policy', () => {
  test('comes back whole from what an event records of it', () => {
    fc.assert(
      fc.property(policies, (policy) => {
        expect(resolvePolicy(policyOverride(policy))).toEqual(policy);
      }),
    );
  });

  test('that says nothing new is not recorded', () => {
    expect(policyOverride(DEFAULT_POLICY)).toBeUndefined();
    expect(policyOverride({ maxRetries: 3, timeoutMs: undefined })).toBeUndefined();
    expect(policyOverride({ ...DEFAULT_POLICY, maxRetries: 4 })).toEqual({ maxRetries: 4 });
  });

  test('takes the default for each part that is left out or undefined', () => {
    expect(resolvePolicy(undefined)).toBe(DEFAULT_POLICY);
    expect(resolvePolicy({ maxRetries: 0, jitter: undefined })).toEqual({ ...DEFAULT_POLICY, maxRetries: 0 });
  });

  test('by default retries three times, delayed and with jitter', () => {
    expect(PolicySchema.parse(DEFAULT_POLICY)).toEqual(DEFAULT_POLICY);
    expect(DEFAULT_POLICY).toMatchObject({ maxRetries: 3, jitter: 'full' });
    expect(backoffMs(DEFAULT_POLICY, 1, 0)).toBeGreaterThan(0);
  });

  test.each([
    { maxRetries: -1 },
    { maxRetries: 1.5 },
    { backoff: { kind: 'list', delaysMs: [] } },
    { backoff: { kind: 'quadratic', baseMs: 1 } },
    { backoff: { kind: 'exponential', baseMs: 1, factor: 0.5 } },
    { backoffCapMs: 0 },
    { timeoutMs: 0 },
    { jitter: 'half' },
    { retries: 3 },
  ])('does not accept %j', (override) => {
    expect(PolicyOverrideSchema.safeParse(override).success).toBe(false);
  });
});
