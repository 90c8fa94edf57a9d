import { describe, expect, test } from 'vitest';
import {
  carry,
  claim,
  complete,
  deadLetter,
  discard,
  fail,
  given,
  ingest,
  lose,
  NOW,
  queue,
  reject,
  replay,
  requestCancel,
  reschedule,
  start,
  TASK_ID,
} from '../../test/support/life.ts';
import type { Recorded } from './events.ts';
import {
  attemptsInRound,
  deadLetterReason,
  evolve,
  fold,
  IllegalHistory,
  policyOf,
  retriesUsed,
} from './task.ts';

const running = [queue(), claim(), start()];
const once = { maxRetries: 0 };

describe('the state after', () => {
  test('a submission has its facts, its payload and when it is due', () => {
    const runAt = NOW + 60_000;
    const { state } = given(
      ingest({ runAt, deadlineAt: runAt + 1, policy: once, fingerprint: 'f', priority: 4 }),
    );
    expect(state).toEqual({
      id: TASK_ID,
      tenant: 'acme',
      type: 'transcode',
      status: 'INGESTED',
      seq: 10,
      round: 1,
      attempt: 0,
      priority: 4,
      facts: { submittedAt: NOW, attemptsBefore: 0, lost: 0, policy: once, deadlineAt: runAt + 1 },
      holder: undefined,
      dueAt: runAt,
      next: undefined,
      cancelRequested: false,
      discarded: false,
      fingerprint: 'f',
      payload: { clip: 1 },
      payloadSeq: 10,
    });
  });

  test('a rejection is final and knows no payload', () => {
    expect(given(reject()).state).toMatchObject({ status: 'REJECTED', payload: undefined });
  });

  test('queueing is due no more, and points at the newest event that holds the payload', () => {
    const inline = given(ingest({ runAt: NOW + 1 }), queue()).state;
    expect(inline).toMatchObject({ status: 'QUEUED', dueAt: undefined, payloadSeq: 20 });
    const apart = given(ingest(), queue({ inlinePayload: false })).state;
    expect(apart).toMatchObject({ status: 'QUEUED', payload: { clip: 1 }, payloadSeq: 10 });
  });

  test('a claim names the holder until the attempt ends', () => {
    expect(given(ingest(), queue(), claim('w7')).state?.holder).toBe('w7');
    for (const end of [complete(), fail(), lose()]) {
      expect(given(ingest(), ...running, end).state?.holder).toBeUndefined();
    }
  });

  test('a failure is due after its delay, counted from when the log stored it', () => {
    const { state } = given(ingest(), ...running, fail());
    expect(state).toMatchObject({ status: 'FAILED', dueAt: NOW + 7 + 550, next: { retryInMs: 550 } });
    const last = given(ingest({ policy: once }), ...running, fail()).state;
    expect(last).toMatchObject({ dueAt: undefined, next: { final: 'retries' } });
  });

  test('a lost lease is counted among the facts of the round', () => {
    expect(given(ingest(), ...running, lose()).state?.facts.lost).toBe(1);
  });

  test('a reschedule is due when it says, or at once, and queues with its priority', () => {
    const later = given(ingest(), reschedule({ runAt: NOW + 60_000 }));
    expect(later.state).toMatchObject({ status: 'INGESTED', priority: 1, dueAt: NOW + 60_000 });
    const retried = given(ingest(), ...running, fail(), reschedule({ priority: 4, runAt: null }), queue());
    expect(retried.events.at(-2)?.event).toMatchObject({ from: 'FAILED', data: { dueAt: null } });
    expect(retried.state).toMatchObject({ status: 'QUEUED', priority: 4, dueAt: undefined });
    expect(given(ingest({ runAt: NOW + 9 }), reschedule()).state).toMatchObject({ dueAt: NOW + 9 });
  });

  test('a cancellation of a running task leaves its status until the worker has seen it', () => {
    const { state } = given(ingest(), ...running, requestCancel());
    expect(state).toMatchObject({ status: 'PROCESSING', cancelRequested: true, holder: 'w1' });
  });
});

describe('a replay', () => {
  const dead = [ingest({ policy: once, deadlineAt: NOW + 9 }), ...running, lose(), deadLetter()];

  test('starts a round of its own, with all its retries, no deadline and the numbers going on', () => {
    const { state } = given(...dead, replay(), queue(), claim('w2'));
    expect(state).toMatchObject({ round: 2, attempt: 2, facts: { attemptsBefore: 1, lost: 0 } });
    expect(state?.facts.deadlineAt).toBeUndefined();
    expect(state && attemptsInRound(state)).toBe(1);
    expect(state && retriesUsed(state)).toBe(0);
  });

  test('keeps payload and policy unless it brings others', () => {
    const same = given(...dead, replay()).state;
    expect(same).toMatchObject({ payload: { clip: 1 }, payloadSeq: 70, facts: { policy: once } });
    const edited = given(...dead, replay({ payload: { clip: 2 }, policy: { maxRetries: 9 } })).state;
    expect(edited).toMatchObject({ payload: { clip: 2 }, payloadSeq: 70 });
    expect(edited && policyOf(edited).maxRetries).toBe(9);
  });

  test('is known from its own event alone, like a discarded dead letter', () => {
    for (const over of [{}, { payload: null, policy: { maxRetries: 9 } }]) {
      const { state, events } = given(...dead, replay(over));
      expect(fold(events.slice(-1))).toEqual(state);
    }
    const discarded = given(...dead, discard());
    expect(fold(discarded.events.slice(-1))).toMatchObject({
      status: 'DEAD_LETTER',
      discarded: true,
      seq: discarded.state?.seq,
    });
  });

  test('forgets a cancellation of the round before', () => {
    const { state } = given(ingest(), ...running, requestCancel(), lose(), requestCancel(), replay());
    expect(state).toMatchObject({ status: 'REPLAYED', cancelRequested: false });
  });
});

describe('a task is known', () => {
  test.each([null, 0, '', false])('with its payload %j from the QUEUED event alone', (payload) => {
    const { state, events } = given(ingest({ payload }), queue());
    expect(state?.payload).toBe(payload);
    expect(fold(events.slice(1))).toEqual(state);
  });

  test.each([
    ['waiting', [ingest({ runAt: NOW + 9, fingerprint: 'f', payload: null })]],
    ['running', [ingest(), ...running, requestCancel()]],
    ['to be retried', [ingest(), ...running, fail()]],
  ])('from the CARRIED event alone while it is %s', (_, commands) => {
    const { state, events } = given(...commands, carry());
    expect(fold(events.slice(-1))).toEqual(state);
    expect(state).toEqual({ ...given(...commands).state, seq: state?.seq, payloadSeq: state?.seq });
  });

  test('from no other event alone', () => {
    for (const recorded of given(ingest(), ...running, complete()).events.slice(2)) {
      expect(() => evolve(undefined, recorded)).toThrow(IllegalHistory);
    }
  });

  test('from nothing as nothing', () => {
    expect(fold([])).toBeUndefined();
  });
});

test('a running task is not dead-lettered for its deadline: the attempt itself is aborted', () => {
  const deadlineAt = NOW + 1;
  const waiting = given(ingest({ deadlineAt }), queue()).state;
  const busy = given(ingest({ deadlineAt }), ...running).state;
  expect(waiting && deadLetterReason(waiting, deadlineAt)).toBe('deadline');
  expect(busy && deadLetterReason(busy, deadlineAt)).toBeUndefined();
});

describe('a history is refused', () => {
  const { events } = given(ingest(), queue(), claim());
  const [ingested, queued, claimed] = events as [Recorded, Recorded, Recorded];
  const other = (recorded: Recorded, event: object): Recorded =>
    ({ ...recorded, event: { ...recorded.event, ...event } }) as Recorded;

  test.each([
    ['that leaves out an event', [ingested, claimed]],
    ['that repeats an event', [ingested, queued, queued]],
    ['that goes backwards', [ingested, { ...queued, seq: 5 }]],
    ['that begins twice', [ingested, other({ ...ingested, seq: 15 }, { from: 'INGESTED' })]],
    ['that mixes two tasks', [ingested, other(queued, { taskId: '01890a5d-ac96-774b-bcce-b302099a8058' })]],
  ])('%s', (_, history) => {
    expect(() => fold(history)).toThrow(IllegalHistory);
  });
});
