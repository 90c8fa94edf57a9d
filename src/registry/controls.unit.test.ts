import { expect, test } from 'vitest';
import { holdsAt, type PauseScope, pauseKey, pauseScopeOf } from './controls.ts';

test.each<[PauseScope, string]>([
  [{ type: 'mail' }, 'type.mail'],
  [{ tenant: 'acme' }, 'tenant.acme'],
  [{ tenant: 'acme', type: 'mail' }, 'tenant-type.acme.mail'],
])('a pause of %j is kept as %s', (scope, key) => {
  expect(pauseKey(scope)).toBe(key);
  expect(pauseScopeOf(key)).toEqual(scope);
});

test('a pause of nothing, or of what is no name, has no key', () => {
  expect(() => pauseKey({})).toThrow();
  expect(() => pauseKey({ tenant: 'a.b' })).toThrow();
});

test.each(['type', 'type.', 'type.a.b', 'tenant.A', 'tenant-type.a', 'tenant-type.a.b.c', 'x.a'])(
  '%s is the key of no pause',
  (key) => {
    expect(pauseScopeOf(key)).toBeUndefined();
  },
);

test('a pause holds until its end, one without an end for ever', () => {
  const pause = { paused: true, reason: 'r', actor: 'key:1', at: '2026-01-01T00:00:00.000Z' } as const;
  const until = '2026-01-02T00:00:00.000Z';
  expect(holdsAt({ ...pause, until }, Date.parse(until) - 1)).toBe(true);
  expect(holdsAt({ ...pause, until }, Date.parse(until))).toBe(false);
  expect(holdsAt(pause, Number.MAX_SAFE_INTEGER)).toBe(true);
});
