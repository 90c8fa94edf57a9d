import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { creditsOf, type TypeDemand } from './credit.ts';

const demand = (over: Partial<TypeDemand> = {}): TypeDemand => ({
  free: 10,
  outstanding: 0,
  window: Number.POSITIVE_INFINITY,
  ...over,
});

describe('creditsOf', () => {
  test('one type asks for all that can run', () => {
    expect(creditsOf([demand()], 10)).toEqual([10]);
  });

  test('asks for nothing when no slot is free', () => {
    expect(creditsOf([demand({ free: 0 })], 0)).toEqual([0]);
  });

  test('waits until a quarter is missing before it asks again', () => {
    expect(creditsOf([demand({ free: 100, outstanding: 76 })], 100)).toEqual([0]);
    expect(creditsOf([demand({ free: 100, outstanding: 75 })], 100)).toEqual([25]);
  });

  test('with nothing outstanding it asks at once, even for one', () => {
    expect(creditsOf([demand({ free: 1 })], 1)).toEqual([1]);
  });

  test('a type at its own limit asks for nothing, and the others go on', () => {
    expect(creditsOf([demand({ free: 0 }), demand()], 10)).toEqual([0, 10]);
  });

  test('every type listens even when there are fewer slots than types', () => {
    expect(creditsOf([demand({ free: 1 }), demand({ free: 1 }), demand({ free: 1 })], 1)).toEqual([1, 1, 1]);
  });

  test('an idle type with a window of one leaves the rest to the busy one', () => {
    expect(creditsOf([demand({ window: 1 }), demand({ window: 64 })], 10)).toEqual([1, 9]);
  });

  test('never asks for more than is free, but for one item a type', () => {
    const types = fc.array(
      fc.record({
        free: fc.nat(50),
        outstanding: fc.nat(50),
        window: fc.oneof(fc.constant(Number.POSITIVE_INFINITY), fc.integer({ min: 1, max: 64 })),
      }),
      { minLength: 1, maxLength: 6 },
    );
    fc.assert(
      fc.property(types, fc.nat(50), (demands, free) => {
        const asked = creditsOf(demands, free);
        const outstanding = demands.reduce((sum, d, i) => sum + d.outstanding + (asked[i] ?? 0), 0);
        const before = demands.reduce((sum, d) => sum + d.outstanding, 0);
        expect(outstanding).toBeLessThanOrEqual(Math.max(before, free) + demands.length);
        asked.forEach((batch, i) => {
          expect(batch).toBeGreaterThanOrEqual(0);
          if (batch > 0)
            expect(batch + (demands[i]?.outstanding ?? 0)).toBeLessThanOrEqual(
              Math.max(1, demands[i]?.free ?? 0),
            );
        });
      }),
    );
  });
});
