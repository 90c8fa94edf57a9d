import { expect, test } from 'vitest';
import { deliveryOf } from './ordered-pull.ts';

const expected = { streamSeq: 42, consumerSeq: 7, storedAt: 1_790_000_000_123 };

test('a delivery is told from its reply subject', () => {
  expect(deliveryOf('$JS.ACK.TASKS.abc.1.42.7.1790000000123456789.0')).toEqual(expected);
});

test('a delivery is told from a reply subject with domain and account', () => {
  expect(deliveryOf('$JS.ACK.hub.ACCHASH.TASKS.abc.1.42.7.1790000000123456789.0')).toEqual(expected);
  expect(deliveryOf('$JS.ACK._.ACCHASH.TASKS.abc.1.42.7.1790000000123456789.0.rAnDoM')).toEqual(expected);
});
