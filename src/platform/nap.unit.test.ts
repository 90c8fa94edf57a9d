import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Nap } from './nap.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

/** Whether it has ended, once everything that was due has happened. */
async function hasEnded(nap: Promise<void>): Promise<boolean> {
  let ended = false;
  void nap.then(() => (ended = true));
  await vi.advanceTimersByTimeAsync(0);
  return ended;
}

test('a nap ends when its time is over, and not before', async () => {
  const nap = new Nap().take(100);
  await vi.advanceTimersByTimeAsync(99);
  expect(await hasEnded(nap)).toBe(false);
  await vi.advanceTimersByTimeAsync(1);
  expect(await hasEnded(nap)).toBe(true);
});

test('who is woken sleeps no longer, and leaves no timer behind', async () => {
  const sleep = new Nap();
  const nap = sleep.take(100);
  sleep.wake();
  expect(await hasEnded(nap)).toBe(true);
  expect(vi.getTimerCount()).toBe(0);
});

test('a nap without a time lasts until it is woken', async () => {
  const sleep = new Nap();
  const nap = sleep.take();
  expect(vi.getTimerCount()).toBe(0);
  expect(await hasEnded(nap)).toBe(false);
  sleep.wake();
  expect(await hasEnded(nap)).toBe(true);
});

test('a wake while nobody sleeps does not shorten the next nap', async () => {
  const sleep = new Nap();
  sleep.wake();
  const first = sleep.take(100);
  sleep.wake();
  await first;
  sleep.wake();
  expect(await hasEnded(sleep.take(100))).toBe(false);
});
