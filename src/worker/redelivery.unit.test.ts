import { describe, expect, test } from 'vitest';
import { carry, claim, complete, given, ingest, lose, queue, start } from '../../test/support/life.ts';
import type { Command } from '../domain/commands.ts';
import type { EventOf, Recorded } from '../domain/events.ts';
import { type Holder, judge, Sightings } from './redelivery.ts';
import type { WorkerEntry } from './worker-entry.ts';

const waiting = [ingest(), queue()];
const queued = given(...waiting).events[1] as Recorded<EventOf<'QUEUED'>>;
const judged = (commands: readonly Command[], holder?: Holder) =>
  judge(given(...commands).state, queued, holder).kind;
const other = (standing: 'reports' | 'silent' | 'gone'): Holder => ({ kind: 'other', standing });

describe('a delivery that may not be the first', () => {
  test('is claimed when the task still waits for this attempt', () => {
    expect(judged(waiting)).toBe('claim');
  });

  test('is claimed from the newer state when the waiting task was carried on', () => {
    const { state } = given(...waiting, carry());
    expect(judge(state, queued, undefined)).toEqual({ kind: 'claim', state });
  });

  test.each([
    ['claimed', [claim()]],
    ['running', [claim(), start()]],
  ])('waits while a live worker says that it runs the %s attempt', (_what, more) => {
    expect(judged([...waiting, ...more], other('reports'))).toBe('wait');
  });

  test('makes the attempt lost when its worker is gone, and says so', () => {
    expect(judge(given(...waiting, claim()).state, queued, other('gone'))).toMatchObject({
      kind: 'lose',
      reason: 'worker_gone',
    });
  });

  test('makes the attempt lost when its worker lives and does not report it', () => {
    expect(judge(given(...waiting, claim()).state, queued, other('silent'))).toMatchObject({
      kind: 'lose',
      reason: 'lease_expired',
    });
  });

  test('is kept when this worker runs the attempt, and lost when it has given it up', () => {
    expect(judged([...waiting, claim()], { kind: 'self', active: true })).toBe('mine');
    expect(judged([...waiting, claim()], { kind: 'self', active: false })).toBe('lose');
  });

  test.each([
    ['completed', [claim(), start(), complete()]],
    ['lost to another worker', [claim(), lose()]],
    ['already queued for its next attempt', [claim(), lose(), queue()]],
    ['running its next attempt', [claim(), lose(), queue(), claim('w3')]],
  ])('is only acked when the task is %s', (_what, more) => {
    expect(judged([...waiting, ...more], other('gone'))).toBe('settled');
  });

  test('is only acked when the log no longer knows the task', () => {
    expect(judge(undefined, queued, undefined)).toEqual({ kind: 'settled' });
  });
});

describe('what the registry says of a worker', () => {
  const attempt = 'acme/t1#1';
  const entry: WorkerEntry = {
    id: 'w1',
    types: ['transcode'],
    concurrency: 1,
    host: 'h',
    pid: 1,
    version: '0',
    startedAt: 0,
    seenAt: 0,
    everyMs: 100,
    blockedMs: 0,
    active: [{ task: 'acme/t1', attempt: 1 }],
  };
  const found = (revision: number, active = entry.active) => ({ entry: { ...entry, active }, revision });

  test('no entry: it is gone', () => {
    expect(new Sightings().standing('w1', attempt, undefined, 0)).toBe('gone');
  });

  test('an entry that keeps changing and names the attempt: it reports', () => {
    const sightings = new Sightings();
    expect(sightings.standing('w1', attempt, found(1), 0)).toBe('reports');
    expect(sightings.standing('w1', attempt, found(2), 10_000)).toBe('reports');
  });

  test('an entry that has not changed for more than three of its periods: it is gone', () => {
    const sightings = new Sightings();
    expect(sightings.standing('w1', attempt, found(1), 0)).toBe('reports');
    expect(sightings.standing('w1', attempt, found(1), 300)).toBe('reports');
    expect(sightings.standing('w1', attempt, found(1), 301)).toBe('gone');
  });

  test('an entry without the attempt gets the benefit of the doubt once: it may just have claimed it', () => {
    const sightings = new Sightings();
    expect(sightings.standing('w1', attempt, found(1, []), 0)).toBe('reports');
    expect(sightings.standing('w1', attempt, found(2, []), 50)).toBe('silent');
  });

  test('another attempt of the same task is not the attempt', () => {
    const sightings = new Sightings();
    const active = [{ task: 'acme/t1', attempt: 2 }];
    sightings.standing('w1', attempt, found(1, active), 0);
    expect(sightings.standing('w1', attempt, found(2, active), 50)).toBe('silent');
  });
});
