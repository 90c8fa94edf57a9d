import { expect, test } from 'vitest';
import { quantilesMs } from './clock.ts';
import { makePayload, PAYLOAD_BYTES } from './payload.ts';

test('quantiles are nearest ranks in milliseconds, whatever the order of the values', () => {
  const us = Array.from({ length: 100 }, (_, index) => (100 - index) * 1_000);
  expect(quantilesMs(us)).toEqual({ n: 100, p50: 50, p95: 95, p99: 99, max: 100 });
});

test('quantiles of nothing say that there was nothing', () => {
  expect(quantilesMs([])).toEqual({ n: 0, p50: 0, p95: 0, p99: 0, max: 0 });
});

test.each([0, 7, 123_456_789])('the payload of task %i has exactly the stated size', (i) => {
  expect(JSON.stringify(makePayload(i))).toHaveLength(PAYLOAD_BYTES);
});
