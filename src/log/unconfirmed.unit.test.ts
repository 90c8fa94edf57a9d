import { expect, test } from 'vitest';
import { Unconfirmed } from './unconfirmed.ts';

test('one try that fails is no trouble, however long ago', () => {
  const unconfirmed = new Unconfirmed();
  unconfirmed.missed('no answer in time', 1_000);
  for (const now of [1_000, 7_000, 60_000]) expect(unconfirmed.trouble(now)).toBeUndefined();
});

test('tries that fail for seconds are, with the last reason', () => {
  const unconfirmed = new Unconfirmed();
  for (const now of [1_000, 3_000, 5_900]) unconfirmed.missed('no answer in time', now);
  expect(unconfirmed.trouble(6_000)).toBeUndefined();
  unconfirmed.missed('insufficient resources', 6_000);
  expect(unconfirmed.trouble(8_000)).toContain('nothing was stored for 7 s (insufficient resources)');
});

test('one that is confirmed ends the trouble', () => {
  const unconfirmed = new Unconfirmed();
  for (const now of [0, 6_000]) unconfirmed.missed('no answer in time', now);
  unconfirmed.over();
  unconfirmed.missed('no answer in time', 7_000);
  expect(unconfirmed.trouble(7_000)).toBeUndefined();
});

test('half a minute after the last try nobody knows, and what fails then is another run', () => {
  const unconfirmed = new Unconfirmed();
  for (const now of [0, 6_000]) unconfirmed.missed('no answer in time', now);
  expect(unconfirmed.trouble(36_000)).toBeDefined();
  expect(unconfirmed.trouble(36_001)).toBeUndefined();
  unconfirmed.missed('no answer in time', 40_000);
  expect(unconfirmed.trouble(40_000)).toBeUndefined();
});
