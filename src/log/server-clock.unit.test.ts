import { expect, test } from 'vitest';
import { createServerClock } from './server-clock.ts';

test('is never ahead of the server, and as good as the fastest answer', async () => {
  let monotonic = 5_000;
  const clock = createServerClock(
    async () => {
      const answeredAt = 1_700_000_000_000 + monotonic;
      monotonic += 7;
      return answeredAt;
    },
    { now: () => monotonic },
  );
  await clock.start();
  expect(clock.now()).toBe(1_700_000_000_000 + monotonic - 7);
  monotonic += 1_000;
  expect(clock.now()).toBe(1_700_000_000_000 + monotonic - 7);
  await clock.stop();
});

test('knows no time before it has asked', () => {
  expect(() => createServerClock(async () => 0).now()).toThrow('has not started');
});
