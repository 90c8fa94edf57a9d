import { expect, test } from 'vitest';
import { dialPace } from './nats.ts';

/** The client's rule: a server is dialled when `last + wait <= wall clock`, else it waits for at most `wait`. */
function dialsWithin(ms: number, wallClock: (monotonic: number) => number): number[] {
  let monotonic = 0;
  const pace = dialPace(250, 0, { clock: { now: () => monotonic }, dice: () => 0 });
  const dials: number[] = [];
  let last = wallClock(0);
  for (monotonic = 60_000; monotonic < 60_000 + ms; ) {
    const wait = pace();
    const now = wallClock(monotonic);
    if (last + wait <= now) {
      dials.push(monotonic - 60_000);
      last = now;
      monotonic += 1;
    } else monotonic += Math.min(wait, last + wait - now);
  }
  return dials;
}

test('a server that refuses is dialled once a pause', () => {
  expect(dialsWithin(1_000, (monotonic) => monotonic)).toEqual([0, 250, 500, 750]);
});

test('a wall clock that was put back an hour since the last dial, or goes back in between, holds up no dial', () => {
  const back = (from: number) => (monotonic: number) =>
    monotonic < from ? monotonic : monotonic - 3_600_000;
  expect(dialsWithin(1_000, back(30_000))).toEqual([0, 250, 500, 750]);
  expect(dialsWithin(1_000, back(60_400))).toEqual([0, 250, 500, 750]);
});

test('a wall clock that was put on an hour makes at most one dial come early', () => {
  const on = (monotonic: number) => (monotonic < 60_400 ? monotonic : monotonic + 3_600_000);
  expect(dialsWithin(1_000, on).length).toBeLessThanOrEqual(5);
});
