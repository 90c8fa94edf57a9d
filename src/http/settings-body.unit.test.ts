import { expect, test } from 'vitest';
import { merged } from './settings-body.ts';

test('a patch changes what it names, removes what is null, and leaves the rest', () => {
  const current = {
    weight: 2,
    limits: { concurrency: 5, ratePerSecond: 10 },
    types: { mail: { weight: 3 } },
  };
  expect(merged(current, { limits: { concurrency: null, burst: 7 }, weight: null })).toEqual({
    limits: { ratePerSecond: 10, burst: 7 },
    types: { mail: { weight: 3 } },
  });
  expect(merged(undefined, { types: { mail: { weight: 3 } } })).toEqual({ types: { mail: { weight: 3 } } });
  expect(merged({ policy: { notRetryable: ['a', 'b'] } }, { policy: { notRetryable: ['c'] } })).toEqual({
    policy: { notRetryable: ['c'] },
  });
});

test('a backoff is replaced as a whole: its kinds have different parts', () => {
  const current = { policy: { maxRetries: 5, backoff: { kind: 'exponential', baseMs: 10, factor: 3 } } };
  expect(merged(current, { policy: { backoff: { kind: 'fixed', baseMs: 20 } } })).toEqual({
    policy: { maxRetries: 5, backoff: { kind: 'fixed', baseMs: 20 } },
  });
});

test('no patch reaches the prototype', () => {
  merged({}, JSON.parse('{"constructor":{"prototype":{"hacked":1}}}'));
  expect(({} as { hacked?: number }).hacked).toBeUndefined();
});
