import { describe, expect, test } from 'vitest';
import { coreWorld, NOW } from '../../test/support/core-world.ts';
import { taskIdOf } from '../../test/support/fenced-log.ts';
import { claim, complete, deadLetter, given, ingest, lose, queue, start } from '../../test/support/life.ts';
import type { Recorded } from '../domain/events.ts';
import { Outage } from './outage.ts';

const once = { policy: { maxRetries: 0, maxLost: 0 } };
/** A task's life up to its last attempt, lost, as of `at`. */
const lost = (n: number, at: number): Recorded[] =>
  given(ingest({ ...once, taskId: taskIdOf(n) }), queue(), claim(), { ...lose(), at }).events.map(
    (recorded) => ({ ...recorded, storedAt: at }),
  );
const done = (n: number, at: number): Recorded[] =>
  given(ingest({ taskId: taskIdOf(n) }), queue(), claim(), start(), complete()).events.map((recorded) => ({
    ...recorded,
    storedAt: at,
  }));
const all = (outage: Outage, lives: readonly Recorded[][]): void => {
  for (const recorded of lives.flat()) outage.observe(recorded);
};
const many = (count: number, life: (n: number) => Recorded[], from = 0): Recorded[][] =>
  Array.from({ length: count }, (_, n) => life(from + n));

describe('an outage of the fleet', () => {
  test('is when more leases are lost than attempts end, and enough to say so', () => {
    const outage = new Outage();
    all(
      outage,
      many(19, (n) => lost(n, NOW)),
    );
    expect(outage.dominates(NOW)).toBe(false);
    all(outage, [lost(100, NOW)]);
    expect(outage.dominates(NOW)).toBe(true);
    all(
      outage,
      many(20, (n) => done(n, NOW), 200),
    );
    expect(outage.dominates(NOW)).toBe(false);
  });

  test('is over when its window has passed', () => {
    const outage = new Outage();
    all(
      outage,
      many(30, (n) => lost(n, NOW)),
    );
    expect(outage.dominates(NOW + 240_000)).toBe(true);
    expect(outage.dominates(NOW + 300_001)).toBe(false);
  });

  test('a few tasks that kill their workers in a busy fleet are none', () => {
    const outage = new Outage();
    all(
      outage,
      many(500, (n) => done(n, NOW)),
    );
    all(
      outage,
      many(40, (n) => lost(n, NOW), 1_000),
    );
    expect(outage.dominates(NOW)).toBe(false);
    expect(outage.condemned({ tenant: 'acme', taskId: taskIdOf(1_039) })).toBe(false);
  });

  test('remembers the tasks that it would condemn, until they move', () => {
    const outage = new Outage();
    all(
      outage,
      many(25, (n) => lost(n, NOW)),
    );
    const victim = { tenant: 'acme', taskId: taskIdOf(24) };
    expect(outage.condemned({ tenant: 'acme', taskId: taskIdOf(3) })).toBe(false);
    expect(outage.condemned(victim)).toBe(true);
    const [end] = given(
      ingest({ ...once, taskId: taskIdOf(24) }),
      queue(),
      claim(),
      lose(),
      deadLetter(),
    ).events.slice(-1);
    if (end !== undefined) outage.observe(end);
    expect(outage.condemned(victim)).toBe(false);
  });
});

test('a forgiven task is queued like any other, with its attempts as before the loss', () => {
  const { log, core, given: happens, run, decisions, line } = coreWorld();
  const id = taskIdOf(1);
  happens(() => log.ingest(1, once));
  run();
  happens(
    () => log.claim(id),
    () => log.lose(id),
  );
  const [end] = decisions();
  expect(end?.kind).toBe('dead_letter');
  if (end !== undefined) core.forgive(end.task, log.now);
  expect(line()?.waiting).toBe(1);
  expect(decisions()).toMatchObject([{ kind: 'queue', task: { id, forgiven: true } }]);
});
