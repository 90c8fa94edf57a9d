import { AGEING } from '../../src/dispatch/fair-order.ts';
import { type SimulatedTask, SimulatedWorld, type Started } from './world.ts';

/** `scale` 1 is the size that the figures are stated for; tests run smaller ones. */
export type Scenario = (scale: number) => Readonly<Record<string, number>>;

const even = (dice: number): number => 50 + 100 * dice;

const repeat = (count: number, act: (n: number) => unknown): void => {
  for (let n = 0; n < count; n += 1) act(n);
};

/** The largest relative distance, over every run of 1 000 starts, of what `tenant` got from its share. */
function worstDeviation(starts: readonly Started[], tenant: string, share: number): number {
  const span = 1_000;
  let got = 0;
  let worst = 0;
  starts.forEach((start, at) => {
    if (start.tenant === tenant) got += 1;
    if (at >= span && starts[at - span]?.tenant === tenant) got -= 1;
    if (at >= span - 1) worst = Math.max(worst, Math.abs(got / span - share) / share);
  });
  return worst;
}

function shares(scale: number, weights: readonly [number, number]) {
  const world = new SimulatedWorld({ workers: 16, runMs: even });
  world.tenant('a', { weight: weights[0] });
  world.tenant('b', { weight: weights[1] });
  const backlog = Math.ceil(20_000 * scale);
  repeat(backlog, () => world.submit({ tenant: 'a' }));
  repeat(backlog, () => world.submit({ tenant: 'b' }));
  // Only while both have work can they share.
  world.run(() => world.starts.length >= backlog);
  const total = weights[0] + weights[1];
  return {
    starts: world.starts.length,
    'worst deviation of a, %': 100 * worstDeviation(world.starts, 'a', weights[0] / total),
    'worst deviation of b, %': 100 * worstDeviation(world.starts, 'b', weights[1] / total),
  };
}

/** How long B's tasks take until the last has started, from B's submission on. */
function lastStartOfB(options: {
  readonly noise: number;
  readonly workers: number;
  readonly tasks: number;
}): number {
  const world = new SimulatedWorld({ workers: options.workers, runMs: even });
  repeat(options.noise, () => world.submit({ tenant: 'a' }));
  world.run(() => world.starts.length >= Math.min(options.noise, 200));
  const from = world.now;
  repeat(options.tasks, () => world.submit({ tenant: 'b' }));
  const ofB = (): Started[] => world.starts.filter(({ tenant }) => tenant === 'b');
  let seen = 0;
  world.run(() => {
    seen = ofB().length;
    return seen === options.tasks;
  });
  return (ofB().at(-1)?.at ?? Number.NaN) - from;
}

function neighbour(scale: number) {
  const workers = 16;
  const beside = lastStartOfB({ noise: Math.ceil(100_000 * scale), workers, tasks: 100 });
  const alone = lastStartOfB({ noise: 0, workers: workers / 2, tasks: 100 });
  return { 'last start of B, ms': beside, 'alone at half the workers, ms': alone, ratio: beside / alone };
}

/** Class 1 never runs dry; how many starts come between two of class 4. */
function ageing(scale: number) {
  const world = new SimulatedWorld({ workers: 8, runMs: even });
  const total = Math.ceil(50_000 * scale);
  for (const priority of [1, 2, 3]) repeat(total, () => world.submit({ tenant: 'a', priority }));
  repeat(Math.ceil(total / 100), () => world.submit({ tenant: 'b', priority: 4 }));
  world.run(() => world.starts.length >= total / 4);
  let last = -1;
  let longest = 0;
  world.starts.forEach(({ priority }, at) => {
    if (priority !== 4) return;
    longest = Math.max(longest, at - last - 1);
    last = at;
  });
  // The ready window is filled before the first turn is due.
  return { 'starts between two of class 4, at most': longest, bound: AGEING[3] + 8 };
}

/** How many had to wait for their first start until somebody had started a third time. */
function lateFirstStarts(starts: readonly Started[]): number {
  const startsOf = new Map<string, number>();
  let late = 0;
  let third = false;
  for (const { tenant } of starts) {
    const count = (startsOf.get(tenant) ?? 0) + 1;
    startsOf.set(tenant, count);
    if (count === 1 && third) late += 1;
    third ||= count === 3;
  }
  return late;
}

function manyTenants(scale: number) {
  const world = new SimulatedWorld({ workers: 500, runMs: even });
  const tenants = Math.ceil(10_000 * scale);
  repeat(tenants, (t) => repeat(100, () => world.submit({ tenant: `t${t}` })));
  const before = performance.now();
  world.run();
  const elapsed = performance.now() - before;
  return {
    starts: world.starts.length,
    "first starts after anybody's third": lateFirstStarts(world.starts),
    'us a decision': (1_000 * world.decidingMs) / world.decided,
    'ms in all': elapsed,
  };
}

/** The most that anybody held, above what it may: 0 when no limit was ever exceeded. */
function limits(scale: number) {
  const world = new SimulatedWorld({ workers: 64, runMs: even });
  const limitOf = new Map<string, number>();
  repeat(10, (t) => {
    limitOf.set(`t${t}`, 1 + t);
    world.tenant(`t${t}`, { limits: { concurrency: 1 + t } });
  });
  repeat(Math.ceil(20_000 * scale), (n) => world.submit({ tenant: `t${n % 10}` }));
  let excess = 0;
  world.onChange = (running, task) => {
    const held = new Map<string, number>();
    for (const n of running) held.set(task(n).tenant, (held.get(task(n).tenant) ?? 0) + 1);
    for (const [tenant, count] of held) excess = Math.max(excess, count - (limitOf.get(tenant) ?? 0));
  };
  world.run();
  return { starts: world.starts.length, 'above the limit, at most': excess };
}

function keys(scale: number) {
  const world = new SimulatedWorld({ workers: 64, runMs: even });
  const tasks: SimulatedTask[] = [];
  repeat(Math.ceil(20_000 * scale), (n) =>
    tasks.push({ tenant: `t${n % 7}`, orderingKey: `k${n % 50}`, priority: 1 + (n % 4) }),
  );
  for (const task of tasks) world.submit(task);
  let together = 0;
  world.onChange = (running, task) => {
    const held = new Map<string, number>();
    for (const n of running) {
      const key = `${task(n).tenant} ${task(n).orderingKey}`;
      held.set(key, (held.get(key) ?? 0) + 1);
      together = Math.max(together, held.get(key) ?? 0);
    }
  };
  world.run();
  const last = new Map<string, number>();
  let outOfOrder = 0;
  for (const { n, tenant, key } of world.starts) {
    const of = `${tenant} ${key}`;
    if (n < (last.get(of) ?? -1)) outOfOrder += 1;
    last.set(of, n);
  }
  return {
    starts: world.starts.length,
    'of one key at a time, at most': together,
    'out of order': outOfOrder,
  };
}

/** What a million waiting tasks of paused tenants add to the cost of deciding for another. */
function blocked(scale: number) {
  const cost = (waiting: number): number => {
    const world = new SimulatedWorld({ workers: 16, runMs: even });
    repeat(100, (t) => {
      const pause = { paused: true, reason: 'r', actor: 'a', at: '2026-01-01T00:00:00.000Z' } as const;
      if (waiting > 0) world.core.terms.putPause({ tenant: `t${t}` }, pause, world.now);
    });
    repeat(waiting, (n) => world.submit({ tenant: `t${n % 100}` }));
    repeat(20_000, () => world.submit({ tenant: 'free' }));
    world.run(() => world.starts.length === 20_000);
    return (1_000 * world.decidingMs) / world.decided;
  };
  cost(0);
  return {
    'us a decision, alone': cost(0),
    'us a decision, beside blocked tenants': cost(Math.ceil(500_000 * scale)),
  };
}

export const scenarios: Readonly<Record<string, Scenario>> = {
  'equal-weights': (scale) => shares(scale, [1, 1]),
  'weights-3-to-1': (scale) => shares(scale, [3, 1]),
  'noisy-neighbour': neighbour,
  ageing,
  'many-tenants': manyTenants,
  limits,
  'ordering-keys': keys,
  'blocked-tenants': blocked,
};
