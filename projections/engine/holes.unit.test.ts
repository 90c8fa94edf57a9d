import { expect, test } from 'vitest';
import { randomLives } from '../../test/support/random-lives.ts';
import { holesIn } from './holes.ts';

const events = randomLives({ seed: 1, tasks: 5, events: 20 });
const without = (...missing: number[]) => ({
  events: events.filter(({ seq }) => !missing.includes(seq)),
  unreadable: [],
  lastSeq: 20,
});

test('a batch that follows without a gap has no hole', () => {
  expect(holesIn(without(), 0)).toEqual([]);
});

test('holes are found at the beginning, in the middle and at the end', () => {
  expect(holesIn(without(1, 2, 7, 19, 20), 0)).toEqual([
    { from: 1, to: 2 },
    { from: 7, to: 7 },
    { from: 19, to: 20 },
  ]);
  expect(holesIn({ ...without(), events: events.slice(5) }, 3)).toEqual([{ from: 4, to: 5 }]);
});

test('an unreadable event is there', () => {
  expect(holesIn({ ...without(7), unreadable: [{ seq: 7, text: '', reason: '' }] }, 0)).toEqual([]);
});
