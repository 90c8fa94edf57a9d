import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createServerClock } from './server-clock.ts';

const START = Date.parse('2026-01-01T00:00:00Z');

/** A server, and a host whose monotonic clock runs `ppm` fast; `hear` brings a message `latencyMs` after it was stored. */
function world({ ppm = 0 } = {}) {
  let elapsedMs = 0;
  let setByMs = 0;
  const clock = createServerClock(async () => 0, { now: () => elapsedMs * (1 + ppm / 1e6) });
  const serverNow = (): number => START + elapsedMs + setByMs;
  return {
    clock,
    serverNow,
    pass: (ms: number) => {
      elapsedMs += ms;
    },
    setServer: (byMs: number) => {
      setByMs += byMs;
    },
    hear: (latencyMs: number) => {
      const storedAt = serverNow();
      elapsedMs += latencyMs;
      clock.heard(storedAt);
    },
  };
}

test('is never ahead of the server, and behind it by no more than the quickest message and the drift', () => {
  const message = fc.record({
    afterMs: fc.integer({ min: 0, max: 2_000 }),
    latencyMs: fc.integer({ min: 0, max: 500 }),
  });
  fc.assert(
    fc.property(
      fc.integer({ min: -100, max: 100 }),
      fc.array(message, { minLength: 1, maxLength: 50 }),
      (ppm, messages) => {
        const { clock, serverNow, pass, hear } = world({ ppm });
        let quickest = Number.POSITIVE_INFINITY;
        let quickestAt = 0;
        for (const { afterMs, latencyMs } of messages) {
          pass(afterMs);
          hear(latencyMs);
          if (latencyMs <= quickest) {
            quickest = latencyMs;
            quickestAt = serverNow();
          }
          expect(clock.now()).toBeLessThanOrEqual(serverNow());
          const driftMs = (serverNow() - quickestAt) * 3e-4;
          expect(clock.now()).toBeGreaterThanOrEqual(serverNow() - quickest - driftMs - 2);
        }
      },
    ),
  );
});

test('goes on between messages', () => {
  const { clock, serverNow, pass, hear } = world();
  hear(1);
  pass(60_000);
  expect(serverNow() - clock.now()).toBeLessThan(20);
  expect(serverNow() - clock.now()).toBeGreaterThanOrEqual(0);
});

test('takes no notice of old messages, such as those of a replay', () => {
  const { clock, serverNow, hear } = world();
  hear(1);
  for (let hours = 1; hours < 24; hours += 1) clock.heard(serverNow() - hours * 3_600_000);
  expect(serverNow() - clock.now()).toBeLessThan(3);
});

test('follows a server whose clock is set back, when all that it says for a while is earlier', () => {
  const { clock, serverNow, pass, hear, setServer } = world();
  hear(1);
  setServer(-3_600_000);
  for (let second = 0; second < 70; second += 1) {
    pass(1_000);
    hear(1);
  }
  expect(Math.abs(serverNow() - clock.now())).toBeLessThan(10);
});

test('does not go back for messages that were long under way', () => {
  const { clock, pass, hear } = world();
  hear(1);
  let before = clock.now();
  for (let second = 0; second < 60; second += 1) {
    pass(1_000);
    hear(400);
    expect(clock.now()).toBeGreaterThan(before);
    before = clock.now();
  }
});

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
  // It loses 0.2 ms a second, so as never to be ahead.
  expect(clock.now()).toBe(1_700_000_000_000 + monotonic - 8);
  await clock.stop();
});

test('knows no time before it has asked', () => {
  expect(() => createServerClock(async () => 0).now()).toThrow('has not started');
});
