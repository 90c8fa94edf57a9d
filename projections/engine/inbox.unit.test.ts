import { expect, test } from 'vitest';
import type { Recorded } from '../../src/domain/events.ts';
import { randomLives } from '../../test/support/random-lives.ts';
import { Inbox } from './inbox.ts';

const events = randomLives({ seed: 1, tasks: 5, events: 100 });
const slice = (from: number, to: number) => ({
  events: events.slice(from, to),
  unreadable: [],
  lastSeq: events[to - 1]?.seq ?? 0,
});
const NOW = { notBefore: 0, settleMs: 0 };
const setup = (limits = {}) => new Inbox({ maxEvents: 10, maxBytes: 1_000_000, ...limits });
const sequences = (batch: { events: readonly Recorded[] } | undefined) => batch?.events.map(({ seq }) => seq);

test('gives what has gathered as one batch', async () => {
  const inbox = setup();
  await inbox.offer(slice(0, 3));
  await inbox.offer(slice(3, 5));
  expect(await inbox.next(NOW)).toMatchObject({ lastSeq: 5, events: { length: 5 } });
});

test('never gives more than a transaction may hold, and the rest next', async () => {
  const inbox = setup();
  void inbox.offer(slice(0, 25));
  const batches = [await inbox.next(NOW), await inbox.next(NOW), await inbox.next(NOW)];
  expect(batches.map((batch) => batch?.lastSeq)).toEqual([10, 20, 25]);
  expect(batches.flatMap(sequences)).toEqual(events.slice(0, 25).map(({ seq }) => seq));
});

test('cuts by bytes too, but gives at least one event', async () => {
  const inbox = setup({ maxBytes: 1 });
  void inbox.offer(slice(0, 2));
  expect(sequences(await inbox.next(NOW))).toEqual([1]);
  expect(sequences(await inbox.next(NOW))).toEqual([2]);
});

test('makes the reader wait when two transactions are gathered, until one is taken', async () => {
  const inbox = setup();
  let accepted = false;
  const offered = inbox.offer(slice(0, 25)).then(() => {
    accepted = true;
  });
  await inbox.next(NOW);
  expect(accepted).toBe(false);
  await inbox.next(NOW);
  await offered;
  expect(accepted).toBe(true);
});

test('waits for more until it may start, but not when a transaction is full', async () => {
  const inbox = setup();
  const patient = { notBefore: performance.now() + 60_000, settleMs: 0 };
  await inbox.offer(slice(0, 3));
  const next = inbox.next(patient);
  await inbox.offer(slice(3, 10));
  expect(await next).toMatchObject({ lastSeq: 10 });
});

test('keeps an unreadable event with the batch that covers its sequence', async () => {
  const inbox = setup();
  const unreadable = [{ seq: 12, text: '?', reason: 'not JSON' }];
  const twelveless = events.slice(0, 15).filter(({ seq }) => seq !== 12);
  void inbox.offer({ events: twelveless, unreadable, lastSeq: 15 });
  expect(await inbox.next(NOW)).toMatchObject({ lastSeq: 10, unreadable: [] });
  expect(await inbox.next(NOW)).toMatchObject({ lastSeq: 15, unreadable });
});

test('gives a batch of nothing but unreadable events', async () => {
  const inbox = setup();
  await inbox.offer({ events: [], unreadable: [{ seq: 1, text: '?', reason: 'not JSON' }], lastSeq: 1 });
  expect(await inbox.next(NOW)).toMatchObject({ events: [], lastSeq: 1, unreadable: [{ seq: 1 }] });
});

test('lets go of both sides when it is closed', async () => {
  const inbox = setup();
  const offered = inbox.offer(slice(0, 30));
  inbox.close();
  await offered;
  expect(await inbox.next(NOW)).toBeUndefined();
  const idle = setup();
  const waiting = idle.next(NOW);
  idle.close();
  expect(await waiting).toBeUndefined();
});
