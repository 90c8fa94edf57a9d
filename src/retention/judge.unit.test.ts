import { describe, expect, test } from 'vitest';
import { firstNeeded, judge, type Kept, lastWord } from './judge.ts';
import type { Needs } from './records.ts';

const HOUR = 3_600_000;
const NOW = 1_000 * HOUR;
const streams = { tasks: 'TASKS', history: 'HISTORY' };
const limits = { hotWindowMs: 24 * HOUR, historyMs: 100 * HOUR, historyBytes: 1_000 };
const ago = (hours: number) => NOW - hours * HOUR;
const dangers = (kept: Kept, part: number) =>
  judge(kept, limits, { now: NOW, part, streams }).map(({ stream, limit }) => `${stream} ${limit}`);

const task = { tenant: 'acme', taskId: 't1', seq: 7, lastSeq: 30 };
const needs = (over: Partial<Needs>): Needs => ({
  kind: 'needs',
  logId: 'a',
  position: 50,
  oldest: null,
  quietest: null,
  at: 0,
  ...over,
});

describe('a limit', () => {
  test('is no danger while nothing is needed, or what is needed is young and small', () => {
    expect(dangers({}, 1)).toEqual([]);
    const kept = { history: { seq: 5, at: ago(79), bytes: 799, why: '' } };
    expect(dangers(kept, 0.8)).toEqual([]);
  });

  test('is a danger before it bites, and takes something away only when it does', () => {
    const kept: Kept = {
      history: { seq: 5, at: ago(81), bytes: 801, why: '' },
      tasks: { seq: 9, at: ago(20), why: '' },
    };
    expect(dangers(kept, 0.8)).toEqual(['TASKS max_age', 'HISTORY max_age', 'HISTORY max_bytes']);
    expect(dangers(kept, 1)).toEqual([]);
  });
});

describe('what is needed', () => {
  test('begins with the oldest unfinished task, or after what the read models reflect', () => {
    expect(firstNeeded(needs({ oldest: task })).seq).toBe(7);
    expect(firstNeeded(needs({})).seq).toBe(51);
    expect(firstNeeded(needs({ position: 3, oldest: task })).seq).toBe(4);
  });

  test('is also the last word of the task that was silent longest', () => {
    expect(lastWord(needs({}))).toBeUndefined();
    expect(lastWord(needs({ quietest: task }))?.seq).toBe(30);
  });
});
