import { expect, test } from 'vitest';
import { aheadOf, LOOK_AGAIN_MS, looksBefore } from './ahead.ts';

const log = { logId: '2026-01-01T00:00:00.000Z', firstSeq: 1, lastSeq: 100 };
const at = (seq: number, logId = log.logId) => ({ name: 'tasks', seq, logId });
/** How long an old leader, cut off from its peers, may go on answering. */
const LOST_QUORUM_MS = 10_000;

test('a checkpoint is ahead when the log ends before it, or is another log', () => {
  expect(aheadOf([at(99), at(100)], log)).toEqual([]);
  const other = at(5, '2026-02-02T00:00:00.000Z');
  expect(aheadOf([at(101), other, at(1)], log)).toEqual([at(101), other]);
});

test('an older end of the same log is looked at for longer than a cut-off leader answers', () => {
  expect(looksBefore([at(101)], log) * LOOK_AGAIN_MS).toBeGreaterThan(LOST_QUORUM_MS);
});

test('a replaced log is believed soon', () => {
  expect(looksBefore([at(5, 'another'), at(101)], log) * LOOK_AGAIN_MS).toBeLessThan(2_000);
});
