import { describe, expect, it } from 'vitest';
import { LogAge } from './log-age.ts';

describe('the age of the log', () => {
  it('tells up to which sequence it is older than an instant, to a grain, and each only once', () => {
    const age = new LogAge(10);
    for (const [seq, storedAt] of [
      [1, 100],
      [2, 105],
      [3, 109],
      [4, 110],
      [9, 150],
    ] as const)
      age.note(seq, storedAt);
    expect(age.takeUntil(109)).toBeUndefined();
    expect(age.takeUntil(110)).toBe(3);
    expect(age.takeUntil(119)).toBeUndefined();
    expect(age.takeUntil(200)).toBe(9);
    expect(age.takeUntil(300)).toBeUndefined();
  });

  it('does not forget the last of a log in which nothing more happens', () => {
    const age = new LogAge(10);
    age.note(1, 100);
    age.note(2, 101);
    expect(age.takeUntil(110)).toBe(2);
  });
});
