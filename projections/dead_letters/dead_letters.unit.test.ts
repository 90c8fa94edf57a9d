import { describe, expect, test } from 'vitest';
import type { Command } from '../../src/domain/commands.ts';
import type { Recorded } from '../../src/domain/events.ts';
import { fold } from '../../src/domain/task.ts';
import {
  claim,
  complete,
  deadLetter,
  discard,
  fail,
  given,
  ingest,
  lose,
  NOW,
  queue,
  replay,
  requestCancel,
  start,
} from '../../test/support/life.ts';
import { randomLives, randomOf } from '../../test/support/random-lives.ts';
import { apply, digest, keyOf } from './apply.ts';
import type { GroupChange } from './group.ts';
import type { Known } from './letter.ts';

const once = { maxRetries: 0 };
const attempt = [queue(), claim(), start()];
const dies = [ingest({ policy: once }), ...attempt, fail(), deadLetter()];

/** The read model without a database: what SQL keeps, kept in maps. */
function model(...batches: (readonly Recorded[])[]) {
  const known = new Map<string, Known>();
  const groups = new Map<string, GroupChange>();
  for (const batch of batches) {
    const outcome = digest(apply(batch), (tenant, id) => known.get(keyOf(tenant, id)));
    for (const { tenant, id, after } of outcome.tasks) known.set(keyOf(tenant, id), after);
    for (const change of outcome.groups) {
      const key = `${change.tenant} ${change.type} ${change.fingerprint}`;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, { ...change });
      else {
        for (const count of ['open', 'replayed', 'discarded', 'deaths'] as const)
          group[count] += change[count];
        if (change.seen !== null)
          group.seen = {
            ...change.seen,
            firstAt: Math.min(group.seen?.firstAt ?? Number.POSITIVE_INFINITY, change.seen.firstAt),
            lastAt: Math.max(group.seen?.lastAt ?? 0, change.seen.lastAt),
          };
      }
    }
  }
  return {
    known,
    groups: [...groups.values()],
    letters: [...known.values()].flatMap(({ letter }) => letter ?? []),
  };
}
const lifeOf = (...commands: Command[]) => model(given(...commands).events);

describe('a dead letter', () => {
  test('tells of its last error, by whom, when, and how often it was tried', () => {
    const { letters } = lifeOf(
      ingest({ policy: { maxRetries: 1 } }),
      ...attempt,
      { ...fail('w1', 1, { error: { name: 'Error', message: 'first' } }), at: NOW + 5 },
      queue(),
      claim('w2'),
      start('w2', 2),
      { ...fail('w2', 2, { workerVersion: '7.1', error: { name: 'Late', message: 'last' } }), at: NOW + 9 },
      deadLetter(NOW + 10),
    );
    expect(letters).toMatchObject([
      {
        type: 'transcode',
        state: 'open',
        reason: 'retries',
        error: { name: 'Late', message: 'last' },
        worker: 'w2',
        workerVersion: '7.1',
        attempt: 2,
        round: 1,
        firstFailedAt: NOW + 5,
        firstDeadAt: NOW + 10,
        deadAt: NOW + 10,
        seq: 100,
        facts: { policy: { maxRetries: 1 } },
      },
    ]);
  });

  test('of lost leases says so, and one that was never tried has no error', () => {
    const { letters } = lifeOf(ingest({ policy: once }), ...attempt, lose(), deadLetter());
    expect(letters).toMatchObject([{ error: { name: 'LeaseLost' }, worker: 'w1', reason: 'retries' }]);
    const late = lifeOf(ingest({ deadlineAt: NOW }), deadLetter()).letters;
    expect(late).toMatchObject([{ error: null, worker: null, reason: 'deadline', firstFailedAt: null }]);
    expect(late[0]?.fingerprint).not.toBe(letters[0]?.fingerprint);
  });

  test('is replayed, and open again when it dies again, of what it died of then', () => {
    expect(lifeOf(...dies, replay()).letters).toMatchObject([
      { state: 'replayed', settledBy: 'user ada', note: 'codec installed', round: 1 },
    ]);
    const again = lifeOf(...dies, { ...replay(), at: NOW + 1 }, queue(), ...deadAgain);
    expect(again.letters).toMatchObject([
      { state: 'open', round: 2, attempt: 2, error: { name: 'LeaseLost' }, settledAt: null, note: null },
    ]);
  });

  test('is discarded for good, with the reason', () => {
    expect(lifeOf(...dies, discard()).letters).toMatchObject([
      { state: 'discarded', note: 'the clip is gone', settledBy: 'user ada' },
    ]);
  });

  test('stays known when its next round completes', () => {
    const { letters, known } = lifeOf(
      ...dies,
      replay(),
      ...attempt.slice(0, 2),
      start('w1', 2),
      complete('w1', 2),
    );
    expect(letters).toMatchObject([{ state: 'replayed' }]);
    expect([...known.values()]).toMatchObject([{ failure: null }]);
  });
});

const deadAgain = [claim(), lose(2), deadLetter()];

describe('tasks that do not die', () => {
  test('leave nothing behind', () => {
    expect(lifeOf(ingest(), ...attempt, complete()).known.size).toBe(0);
    for (const end of [[queue(), claim(), start('w1', 2), complete('w1', 2)], [requestCancel()]])
      expect([...lifeOf(ingest(), ...attempt, fail(), ...end).known.values()]).toEqual([
        { failure: null, letter: null },
      ]);
  });

  test('are known by their last failure as long as they may', () => {
    expect([...lifeOf(ingest(), ...attempt, fail()).known.values()]).toMatchObject([
      { failure: { error: { message: 'codec missing' }, worker: 'w1', firstFailedAt: NOW }, letter: null },
    ]);
  });
});

describe('a group', () => {
  test('counts what became of its letters, and keeps first, last and a sample', () => {
    const { groups } = lifeOf(...dies);
    expect(groups).toMatchObject([
      { tenant: 'acme', type: 'transcode', open: 1, replayed: 0, discarded: 0, deaths: 1 },
    ]);
    expect(groups[0]?.seen).toMatchObject({
      errorName: 'Error',
      shape: 'codec missing',
      firstAt: NOW,
      lastSeq: 60,
    });
    expect(lifeOf(...dies, replay()).groups).toMatchObject([{ open: 0, replayed: 1, deaths: 1 }]);
    expect(lifeOf(...dies, discard()).groups).toMatchObject([{ open: 0, discarded: 1, deaths: 1 }]);
  });

  test('loses a letter that dies of something else, not the death', () => {
    const { groups } = lifeOf(...dies, replay(), queue(), ...deadAgain);
    expect(
      groups.map(({ open, replayed, deaths, seen }) => [seen?.errorName, open, replayed, deaths]),
    ).toEqual([
      ['Error', 0, 0, 1],
      ['LeaseLost', 1, 0, 1],
    ]);
  });
});

test('whatever happens, letters are those that are dead, and groups add up to them, however events come', () => {
  const events = randomLives({ seed: 21, tasks: 200, events: 6_000 });
  const states = new Map<string, Recorded[]>();
  for (const recorded of events) {
    const of = states.get(recorded.event.taskId) ?? [];
    states.set(recorded.event.taskId, [...of, recorded]);
  }
  const dead = [...states.values()].map(fold).filter((state) => state?.status === 'DEAD_LETTER');
  const whole = model(events);
  const count = (state: string) => whole.letters.filter((letter) => letter.state === state).length;
  expect(count('open')).toBe(dead.filter((state) => state?.discarded === false).length);
  expect(count('discarded')).toBe(dead.filter((state) => state?.discarded === true).length);
  const sum = (of: 'open' | 'replayed' | 'discarded' | 'deaths') =>
    whole.groups.reduce((total, group) => total + group[of], 0);
  for (const state of ['open', 'replayed', 'discarded'] as const) expect(sum(state)).toBe(count(state));
  expect(sum('deaths')).toBe(events.filter(({ event }) => event.kind === 'DEAD_LETTER').length);
  expect(['open', 'replayed', 'discarded'].map(count)).not.toContain(0);

  const dice = randomOf(3);
  const pieces: Recorded[][] = [];
  for (let from = 0; from < events.length; ) {
    const size = 1 + Math.floor(dice() * 30);
    pieces.push(events.slice(from, from + size));
    from += size;
  }
  const apart = model(...pieces);
  expect(apart.known).toEqual(whole.known);
  const sorted = (groups: readonly GroupChange[]) =>
    groups.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  expect(sorted(apart.groups)).toEqual(sorted(whole.groups));
});
