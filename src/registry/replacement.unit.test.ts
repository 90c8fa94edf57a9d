import { describe, expect, test } from 'vitest';
import { goneBefore, Replacement } from './replacement.ts';

const look = (lastRevision: number, created = 'monday') => ({ created, lastRevision });

describe('a bucket', () => {
  test('is the same while it has what was heard of, or more', () => {
    const replacement = new Replacement();
    for (const revision of [5, 5, 9]) expect(replacement.look(look(revision), 5)).toBe(false);
  });

  test('that was made again is another, whatever it has', () => {
    for (const revision of [1, 5, 9]) {
      const replacement = new Replacement();
      replacement.look(look(5), 5);
      expect(replacement.look(look(revision, 'tuesday'), 5)).toBe(true);
      expect(replacement.look(look(revision, 'tuesday'), revision)).toBe(false);
    }
  });

  test('is the same when a server that lags tells of it for some seconds', () => {
    const replacement = new Replacement();
    for (let seconds = 0; seconds < 18; seconds += 2) expect(replacement.look(look(4), 5)).toBe(false);
    expect(replacement.look(look(5), 5)).toBe(false);
    for (let seconds = 0; seconds < 18; seconds += 2) expect(replacement.look(look(4), 5)).toBe(false);
  });

  test('that stays behind what was heard of is an older copy', () => {
    const replacement = new Replacement();
    const told = Array.from({ length: 12 }, () => replacement.look(look(4), 5));
    expect(told.indexOf(true)).toBe(9);
    expect(told.filter(Boolean)).toHaveLength(1);
  });
});

describe('what is older than all that a bucket has', () => {
  test('is gone for who has heard all of it', () => {
    for (const heard of [9, 10]) expect(goneBefore({ firstRevision: 7, lastRevision: 9 }, heard)).toBe(7);
  });

  test('may have been changed, for who has not', () => {
    expect(goneBefore({ firstRevision: 7, lastRevision: 9 }, 8)).toBe(0);
  });
});
