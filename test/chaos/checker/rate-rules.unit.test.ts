import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Actor, Recorded } from '../../../src/domain/events.ts';
import { allot } from '../../../src/intake/rates/allotment.ts';
import { given, ingest, NOW, queue, requeue } from '../../support/life.ts';
import { checkIntake, checkRates } from './rate-rules.ts';

const RATE = { tenant: 'acme', ratePerSecond: 2, burst: 3 };
const key: Actor = { kind: 'key', id: 'k' };
const idOf = (n: number): string => `00000000-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;
/** The first events of so many lives, in the order of their last one. */
const inOrder = (lives: readonly (readonly Recorded[])[]): Recorded[] =>
  lives.flat().map((recorded, index) => ({ ...recorded, seq: index + 1 }));
const startedAt = (at: readonly number[], leader = (_n: number): string => 'd1'): Recorded[] =>
  inOrder(
    at.map(
      (ms, n) =>
        given(
          ingest({ taskId: idOf(n) }),
          queue({ at: NOW + ms, actor: { kind: 'dispatcher', id: leader(n) } }),
        ).events,
    ),
  );
const submittedAt = (at: readonly number[], actor = key): Recorded[] =>
  inOrder(at.map((ms, n) => given(ingest({ taskId: idOf(n), at: NOW + ms, actor })).events));

describe('a rate of dispatch', () => {
  test('bears a burst, what the rate gives, and work items that are announced again', () => {
    const [first, ...others] = [given(ingest(), queue(), requeue(), requeue()).events];
    const log = [...inOrder([first ?? [], ...others]), ...startedAt([0, 0, 500, 1_000, 1_500, 60_000])];
    expect(checkRates(log, [RATE])).toEqual([]);
  });

  test('that is exceeded by one is found, with those that exceed it and no others', () => {
    const log = startedAt([0, 1_000, 60_000, 60_000, 60_000, 60_010, 60_020, 61_000]);
    const [violation, ...more] = checkRates(log, [RATE]);
    expect(more).toEqual([]);
    expect(violation).toMatchObject({ rule: 'rates' });
    expect(violation?.witness).toHaveLength(4);
  });

  test('of a type is not exceeded by other types and tenants', () => {
    const log = startedAt([0, 0, 0, 0, 0, 0, 0, 0]);
    expect(checkRates(log, [{ ...RATE, type: 'other' }])).toEqual([]);
    expect(checkRates(log, [{ ...RATE, tenant: 'other' }])).toEqual([]);
    expect(checkRates(log, [{ ...RATE, type: 'transcode' }])).toHaveLength(1);
  });

  test('may be exceeded by a burst where the leader changes, and no more', () => {
    const two = (n: number): string => (n < 3 ? 'd1' : 'd2');
    expect(checkRates(startedAt([0, 1, 2, 3, 4, 5], two), [RATE])).toEqual([]);
    expect(checkRates(startedAt([0, 1, 2, 3, 4, 5, 6], two), [RATE])).toHaveLength(1);
  });
});

describe('a rate of submission', () => {
  const RATES = [{ ...RATE, processes: 2 }];
  /** The burst, and of each process a token in advance and one of a draw under way. */
  const MOST = 7;
  const at = (count: number, ms = 0): number[] => Array.from({ length: count }, () => ms);

  test('bears its burst and what each process may hold, and not one more', () => {
    expect(checkIntake(submittedAt(at(MOST)), { intakeRates: RATES, alone: [] })).toEqual([]);
    const [violation] = checkIntake(submittedAt(at(MOST + 1)), { intakeRates: RATES, alone: [] });
    expect(violation).toMatchObject({ rule: 'intake' });
    expect(violation?.witness).toHaveLength(MOST + 1);
  });

  test('does not count what the gateway and schedules bring in', () => {
    for (const actor of [
      { kind: 'intake', id: 'gateway' },
      { kind: 'dispatcher', id: 'd1' },
    ] as const)
      expect(checkIntake(submittedAt(at(50), actor), { intakeRates: RATES, alone: [] })).toEqual([]);
  });

  test('is allowed once more to a process that is alone, while it is', () => {
    const alone = [{ process: 'api-1', from: NOW - 100, until: NOW + 2_000 }];
    const log = submittedAt([...at(MOST), ...at(3, 500)]);
    expect(checkIntake(log, { intakeRates: RATES, alone })).toEqual([]);
    expect(checkIntake(log, { intakeRates: RATES, alone: [] })).toHaveLength(1);
    const before = alone.map((one) => ({ ...one, from: NOW - 5_000, until: NOW - 1 }));
    expect(checkIntake(log, { intakeRates: RATES, alone: before })).toHaveLength(1);
  });
});

test('what a bucket lets through is never found', () => {
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 0, max: 900 }), { maxLength: 80 }), (gaps) => {
      let fullAt = 0;
      let ms = 0;
      const passed: number[] = [];
      for (const gap of gaps) {
        ms += gap;
        const { granted, fullAt: after } = allot(fullAt, { rate: RATE, now: NOW + ms, want: 1 });
        fullAt = after;
        if (granted === 1) passed.push(ms);
      }
      expect(checkRates(startedAt(passed), [RATE])).toEqual([]);
      const intakeRates = [{ ...RATE, processes: 1 }];
      expect(checkIntake(submittedAt(passed), { intakeRates, alone: [] })).toEqual([]);
    }),
    { numRuns: 200 },
  );
});
