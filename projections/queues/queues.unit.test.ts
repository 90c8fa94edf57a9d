import { expect, test } from 'vitest';
import type { Command } from '../../src/domain/commands.ts';
import {
  cancel,
  carry,
  claim,
  complete,
  given,
  ingest,
  queue,
  requestCancel,
  reschedule,
  start,
} from '../../test/support/life.ts';
import { randomLives } from '../../test/support/random-lives.ts';
import { apply } from './apply.ts';

const deltas = (...commands: Command[]) =>
  Object.fromEntries(apply(given(...commands).events).map(({ status, delta }) => [status, delta]));

test('a submission adds one', () => {
  expect(apply(given(ingest({ priority: 3 })).events)).toEqual([
    { tenant: 'acme', type: 'transcode', priority: 3, status: 'INGESTED', delta: 1 },
  ]);
});

test('a task that moves on within a batch counts only where it ends', () => {
  expect(deltas(ingest(), queue(), claim(), start(), complete())).toEqual({ COMPLETED: 1 });
});

test('a later batch takes away where an earlier one added', () => {
  const { events } = given(ingest(), queue(), claim());
  expect(apply(events.slice(2)).map(({ status, delta }) => [status, delta])).toEqual([
    ['QUEUED', -1],
    ['CLAIMED', 1],
  ]);
});

test('events that change no status change no count', () => {
  const running = [ingest(), queue(), claim(), start()];
  expect(deltas(...running, requestCancel())).toEqual({ PROCESSING: 1 });
  expect(deltas(...running, carry())).toEqual({ PROCESSING: 1 });
  expect(deltas(...running, requestCancel(), cancel())).toEqual({ CANCELLED: 1 });
});

test('another priority moves the count from the old one to the new', () => {
  const { events } = given(ingest({ priority: 3 }), reschedule({ priority: 1 }), reschedule({ runAt: 5 }));
  expect(apply(events.slice(1)).map(({ status, priority, delta }) => [status, priority, delta])).toEqual([
    ['INGESTED', 3, -1],
    ['INGESTED', 1, 1],
  ]);
  expect(apply(events)).toMatchObject([{ priority: 1, status: 'INGESTED', delta: 1 }]);
});

test('the counts of every priority are those of the tasks in it', () => {
  const events = randomLives({ seed: 11, tasks: 40, events: 2_000 });
  const last = new Map(events.map(({ event }) => [event.taskId, event.priority]));
  for (const wanted of [1, 2, 3, 4]) {
    const counted = apply(events).filter(({ priority }) => priority === wanted);
    expect(counted.reduce((sum, { delta }) => sum + delta, 0)).toBe(
      [...last.values()].filter((priority) => priority === wanted).length,
    );
  }
});

test('the counts always add up to the number of tasks', () => {
  const events = randomLives({ seed: 7, tasks: 40, events: 2_000 });
  const tasks = new Set(events.map(({ event }) => event.taskId)).size;
  expect(apply(events).reduce((sum, { delta }) => sum + delta, 0)).toBe(tasks);
});
