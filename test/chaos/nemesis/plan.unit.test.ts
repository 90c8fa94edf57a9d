import { expect, test } from 'vitest';
import { FAULT_KINDS, planFaults } from './plan.ts';

const targets = {
  parts: ['api-1', 'worker-1', 'postgres'],
  brokers: ['n1', 'n2', 'n3'],
  links: ['api-1~nats', 'worker-1~nats'],
  routes: ['n1~peers', 'n2~peers', 'n3~peers'],
  leaders: ['TASKS', 'TIMERS'],
  remakable: ['timers', 'work_a'],
};
const LENGTH_MS = 3_600_000;
const plan = (seed: number) => planFaults({ seed, lengthMs: LENGTH_MS, targets });
const seeds = [1, 2, 3, 4, 5];

test('the same seed gives the same faults, another seed others', () => {
  expect(plan(7)).toEqual(plan(7));
  expect(plan(7)).not.toEqual(plan(8));
});

test('every kind of fault and every target comes up', () => {
  const faults = plan(1);
  expect(new Set(faults.map(({ kind }) => kind))).toEqual(new Set(FAULT_KINDS));
  expect(new Set(faults.map(({ target }) => target))).toEqual(
    new Set([...Object.values(targets).flat(), 'brokers']),
  );
});

test('every fault ends within the run', () => {
  for (const { atMs, untilMs } of seeds.flatMap(plan)) {
    expect(atMs).toBeGreaterThanOrEqual(0);
    expect(untilMs).toBeGreaterThanOrEqual(atMs);
    expect(untilMs).toBeLessThanOrEqual(LENGTH_MS);
  }
});

test('no target is hurt twice at a time, and at most one broker is', () => {
  for (const seed of seeds) {
    const until = new Map<string, number>();
    for (const { kind, target, atMs, untilMs } of plan(seed)) {
      if (kind === 'stepdown' || kind === 'damage') continue;
      const group = /^n\d/.test(target) ? 'brokers' : target;
      expect(until.get(group) ?? -1).toBeLessThan(atMs);
      until.set(group, untilMs);
    }
  }
});

test('a stand without brokers of its own, or without links, has faults too', () => {
  const faults = planFaults({
    seed: 1,
    lengthMs: 60_000,
    targets: { parts: ['api-1'], brokers: [], links: [], routes: [], leaders: [], remakable: [] },
  });
  expect(faults.length).toBeGreaterThan(0);
  expect(faults.every(({ target }) => target !== '')).toBe(true);
});
