import { describe, expect, test } from 'vitest';
import {
  cancel,
  carry,
  claim,
  complete,
  deadLetter,
  debounce,
  discard,
  fail,
  given,
  ingest,
  lose,
  NOW,
  outcome,
  queue,
  reject,
  replay,
  requestCancel,
  requeue,
  reschedule,
  start,
  worker,
} from '../../test/support/life.ts';
import type { Command } from './commands.ts';
import { decide } from './decide.ts';
import type { ErrorCode } from './errors.ts';
import type { EventKind } from './events.ts';
import { fold } from './task.ts';

const once = { maxRetries: 0 };
const running = [queue(), claim(), start()];

/** One life that leads into each situation that a command can meet. `w1` holds attempt 1 wherever one is held. */
const lives = {
  none: [],
  ingested: [ingest()],
  'ingested, debounced': [ingest({ debounce: { key: 'k', until: NOW + 5_000, at: NOW } })],
  rejected: [reject()],
  queued: [ingest(), queue()],
  claimed: [ingest(), queue(), claim()],
  processing: [ingest(), ...running],
  completed: [ingest(), ...running, complete()],
  'failed, to be retried': [ingest(), ...running, fail()],
  'failed for good': [ingest({ policy: once }), ...running, fail()],
  'lost, to be retried': [ingest(), ...running, lose()],
  'lost for good': [ingest({ policy: once }), ...running, lose()],
  'dead-lettered': [ingest({ policy: once }), ...running, fail(), deadLetter()],
  discarded: [ingest({ policy: once }), ...running, fail(), deadLetter(), discard()],
  replayed: [ingest({ policy: once }), ...running, fail(), deadLetter(), replay()],
  cancelled: [ingest(), requestCancel()],
  'claimed, with a cancellation pending': [ingest(), queue(), claim(), requestCancel()],
  'processing, with a cancellation pending': [ingest(), ...running, requestCancel()],
  'failed, with a cancellation pending': [ingest(), ...running, requestCancel(), fail()],
} satisfies Record<string, readonly Command[]>;
type Situation = keyof typeof lives;

const commands: { [K in Command['kind']]: Command & { kind: K } } = {
  ingest: ingest(),
  reject: reject(),
  queue: queue(),
  requeue: requeue(),
  claim: claim(),
  start: start(),
  complete: complete(),
  fail: fail(),
  lose: lose(),
  dead_letter: deadLetter(),
  request_cancel: requestCancel(),
  cancel: cancel(),
  replay: replay(),
  discard: discard(),
  reschedule: reschedule(),
  debounce: debounce(),
  carry: carry(),
};
type Outcomes = Record<Command['kind'], EventKind | ErrorCode>;

const missing: Outcomes = {
  ingest: 'INGESTED',
  reject: 'REJECTED',
  queue: 'task_missing',
  requeue: 'task_missing',
  claim: 'task_missing',
  start: 'task_missing',
  complete: 'task_missing',
  fail: 'task_missing',
  lose: 'task_missing',
  dead_letter: 'task_missing',
  request_cancel: 'task_missing',
  cancel: 'task_missing',
  replay: 'task_missing',
  discard: 'task_missing',
  reschedule: 'task_missing',
  debounce: 'task_missing',
  carry: 'task_missing',
};
const settled: Outcomes = {
  ingest: 'task_exists',
  reject: 'task_exists',
  queue: 'transition_illegal',
  requeue: 'transition_illegal',
  claim: 'transition_illegal',
  start: 'lease_lost',
  complete: 'lease_lost',
  fail: 'lease_lost',
  lose: 'transition_illegal',
  dead_letter: 'transition_illegal',
  request_cancel: 'task_terminal',
  cancel: 'task_terminal',
  replay: 'transition_illegal',
  discard: 'transition_illegal',
  reschedule: 'task_terminal',
  debounce: 'task_terminal',
  carry: 'task_terminal',
};
const waiting: Outcomes = {
  ...settled,
  queue: 'QUEUED',
  dead_letter: 'retries_left',
  request_cancel: 'CANCELLED',
  cancel: 'cancel_not_requested',
  reschedule: 'RESCHEDULED',
  debounce: 'task_handed_out',
  carry: 'CARRIED',
};
const exhausted: Outcomes = {
  ...waiting,
  queue: 'retries_exhausted',
  reschedule: 'retries_exhausted',
  dead_letter: 'DEAD_LETTER',
};
const claimed: Outcomes = {
  ...settled,
  start: 'PROCESSING',
  complete: 'transition_illegal',
  fail: 'transition_illegal',
  lose: 'RETRY_CLAIMED',
  request_cancel: 'CANCEL_REQUESTED',
  cancel: 'cancel_not_requested',
  reschedule: 'task_handed_out',
  debounce: 'task_handed_out',
  carry: 'CARRIED',
};
const processing: Outcomes = {
  ...claimed,
  start: 'transition_illegal',
  complete: 'COMPLETED',
  fail: 'FAILED',
};
const cancelling = { request_cancel: 'cancel_pending', cancel: 'CANCELLED' } as const;

/** Every situation with every command. */
const expected: Record<Situation, Outcomes> = {
  none: missing,
  ingested: { ...waiting, debounce: 'transition_illegal' },
  'ingested, debounced': { ...waiting, debounce: 'RESCHEDULED' },
  rejected: settled,
  queued: {
    ...waiting,
    queue: 'transition_illegal',
    requeue: 'QUEUED',
    claim: 'CLAIMED',
    reschedule: 'task_handed_out',
  },
  claimed,
  processing,
  completed: settled,
  'failed, to be retried': waiting,
  'failed for good': exhausted,
  'lost, to be retried': waiting,
  'lost for good': exhausted,
  'dead-lettered': { ...settled, replay: 'REPLAYED', discard: 'DISCARDED' },
  discarded: { ...settled, replay: 'task_discarded', discard: 'task_discarded' },
  replayed: waiting,
  cancelled: { ...settled, replay: 'REPLAYED' },
  'claimed, with a cancellation pending': { ...claimed, ...cancelling },
  'processing, with a cancellation pending': { ...processing, ...cancelling },
  'failed, with a cancellation pending': {
    ...waiting,
    queue: 'cancel_pending',
    reschedule: 'cancel_pending',
    cancel: 'CANCELLED',
  },
};

const cases = Object.entries(expected).flatMap(([situation, outcomes]) =>
  Object.entries(outcomes).map(
    ([command, then]) => [command as Command['kind'], situation as Situation, then] as const,
  ),
);

test.each(cases)('%s, when the task is %s, gives %s', (command, situation, then) => {
  expect(outcome(given(...lives[situation]).when(commands[command]))).toBe(then);
});

describe('only the holder of the live attempt moves it', () => {
  const held = given(ingest(), ...running);
  const second = given(ingest(), ...running, lose(), queue(), claim('w2'), start('w2', 2));

  test.each([
    ['complete', complete('w2')],
    ['fail', fail('w2')],
    ['start', start('w2')],
  ])('%s by another worker is refused', (_, command) => {
    expect(outcome(held.when(command))).toBe('lease_lost');
  });

  test.each([
    ['complete', complete('w1', 1)],
    ['fail', fail('w1', 1)],
    ['start', start('w1', 1)],
  ])('%s of an attempt that was lost is refused, though the next one is running', (_, command) => {
    expect(outcome(second.when(command))).toBe('lease_lost');
  });

  test('the same worker cannot finish its second attempt under the number of its first', () => {
    const again = given(ingest(), ...running, lose(), queue(), claim('w1'), start('w1', 2));
    expect(outcome(again.when(complete('w1', 1)))).toBe('lease_lost');
    expect(outcome(again.when(complete('w1', 2)))).toBe('COMPLETED');
  });

  test('losing an attempt that was already replaced is refused', () => {
    expect(outcome(second.when(lose(1)))).toBe('lease_lost');
  });

  test('a worker cannot carry out the cancellation of an attempt that another one holds', () => {
    const asked = given(ingest(), ...running, requestCancel());
    expect(outcome(asked.when(cancel(worker('w2'))))).toBe('lease_lost');
    expect(outcome(asked.when(cancel(worker('w1'))))).toBe('CANCELLED');
  });

  test('a completion still counts while a cancellation is pending: whichever is stored first stands', () => {
    expect(outcome(given(ingest(), ...running, requestCancel()).when(complete()))).toBe('COMPLETED');
  });
});

describe('the deadline', () => {
  const deadlineAt = NOW + 1_000;
  const late = given(ingest({ deadlineAt }), queue());

  test('ends a waiting task once it is reached, not a millisecond before', () => {
    expect(outcome(late.when(deadLetter(deadlineAt - 1)))).toBe('retries_left');
    expect(late.gives(deadLetter(deadlineAt))).toMatchObject({
      kind: 'DEAD_LETTER',
      data: { reason: 'deadline' },
    });
  });

  test('does not end an attempt that runs', () => {
    const attempt = given(ingest({ deadlineAt }), ...running);
    expect(outcome(attempt.when(deadLetter(deadlineAt)))).toBe('transition_illegal');
    expect(outcome(attempt.when({ ...complete(), at: deadlineAt + 1 }))).toBe('COMPLETED');
  });

  test('is left behind by a replay', () => {
    const anew = given(ingest({ deadlineAt }), deadLetter(deadlineAt), replay());
    expect(outcome(anew.when(deadLetter(deadlineAt + 1)))).toBe('retries_left');
  });
});

test('a task whose payload is not at hand cannot be carried: the event that holds it may age out', () => {
  const { events } = given(ingest(), queue({ inlinePayload: false }));
  const known = fold(events.slice(1));
  expect(outcome(decide(known, carry()))).toBe('payload_unknown');
  expect(outcome(decide(fold(events), carry()))).toBe('CARRIED');
});

describe('what an event says', () => {
  test('INGESTED has all that the submission said, and no key for what it left out', () => {
    const full = {
      payload: [1, null],
      priority: 1,
      fingerprint: 'f',
      idempotencyKey: 'k',
      policy: once,
      runAt: NOW + 1,
      deadlineAt: NOW + 2,
    };
    const { payload, priority, ...rest } = full;
    expect(given().gives(ingest(full))).toMatchObject({
      priority,
      from: null,
      round: 1,
      attempt: 0,
      data: { payload, ...rest },
    });
    expect(Object.keys(given().gives(ingest({ policy: undefined })).data)).toEqual(['payload']);
  });

  test('QUEUED carries the facts, and the payload itself or where to find it', () => {
    const submitted = given(ingest({ policy: once }));
    const facts = { submittedAt: NOW, attemptsBefore: 0, lost: 0, policy: once };
    expect(submitted.gives(queue()).data).toEqual({ facts, payload: { clip: 1 } });
    expect(submitted.gives(queue({ inlinePayload: false })).data).toEqual({ facts, payloadSeq: 10 });
  });

  test('an attempt is counted when it is claimed', () => {
    const { events } = given(ingest(), ...running, lose(), queue(), claim('w2'));
    expect(events.map(({ event }) => event.attempt)).toEqual([0, 0, 1, 1, 1, 1, 2]);
  });

  test('FAILED and RETRY_CLAIMED say what follows', () => {
    const { gives } = given(ingest(), ...running);
    expect(gives(fail()).data).toEqual({
      error: { name: 'Error', message: 'codec missing' },
      next: { retryInMs: 550 },
    });
    expect(gives(lose()).data).toEqual({
      lostWorker: 'w1',
      reason: 'lease_expired',
      next: { retryInMs: 550 },
    });
  });

  test('the default policy allows three retries: the fourth attempt is the last', () => {
    const rounds = [1, 2, 3].flatMap((n) => [queue(), claim(), start('w1', n), fail('w1', n)]);
    const { gives } = given(ingest(), ...rounds, queue(), claim(), start('w1', 4));
    expect(gives(fail('w1', 4)).data).toMatchObject({ next: { final: 'retries' } });
    expect(given(ingest(), ...rounds).events.at(-1)?.event.data).toMatchObject({
      next: { retryInMs: expect.any(Number) },
    });
  });

  test('a lost attempt uses up a retry like a failed one', () => {
    const { gives } = given(ingest({ policy: { maxRetries: 1 } }), ...running, lose(), queue(), claim());
    expect(gives(lose(2)).data).toMatchObject({ next: { final: 'retries' } });
  });

  test('a task that loses one worker more than its policy allows is poison, however many retries are left', () => {
    const policy = { maxRetries: 20, maxLost: 1 };
    const once = given(ingest({ policy }), ...running, lose(1));
    expect(once.events.at(-1)?.event.data).toMatchObject({ next: { retryInMs: expect.any(Number) } });
    const twice = given(ingest({ policy }), ...running, lose(1), queue(), claim(), lose(2));
    expect(twice.events.at(-1)?.event.data).toMatchObject({ next: { final: 'poison' } });
    expect(twice.gives(deadLetter()).data).toMatchObject({ reason: 'poison' });
  });

  test('failures do not count towards poison, and a replay starts to count anew', () => {
    const policy = { maxRetries: 5, maxLost: 1 };
    const life = [ingest({ policy }), ...running, lose(1), queue(), claim(), start('w1', 2), fail('w1', 2)];
    expect(given(...life).state?.facts.lost).toBe(1);
    const dead = [...life, queue(), claim(), lose(3), deadLetter()];
    const again = given(...dead, replay(), queue(), claim(), lose(4));
    expect(again.events.at(-1)?.event.data).toMatchObject({ next: { retryInMs: expect.any(Number) } });
  });

  test('a pardoned loss does not count: the task has as many attempts and losses left as before it', () => {
    const policy = { maxRetries: 1, maxLost: 0 };
    const condemned = given(ingest({ policy }), ...running, lose(1));
    expect(outcome(condemned.when(queue()))).toBe('retries_exhausted');
    const pardoned = given(ingest({ policy }), ...running, lose(1), queue({ pardon: true }));
    expect(pardoned.state).toMatchObject({ status: 'QUEUED', attempt: 1, next: undefined });
    expect(pardoned.state?.facts).toMatchObject({ attemptsBefore: 1, lost: 0 });
    const [failed] = given(
      ingest({ policy }),
      ...running,
      lose(1),
      queue({ pardon: true }),
      claim(),
      start('w1', 2),
      fail('w1', 2),
    ).events.slice(-1);
    expect(failed?.event.data).toMatchObject({ next: { retryInMs: expect.any(Number) } });
  });

  test('a task is pardoned three times a round at most, and a replay starts to count anew', () => {
    const policy = { maxRetries: 0, maxLost: 0 };
    const lap = (n: number) => [claim(), lose(n), queue({ pardon: true })];
    const often = given(ingest({ policy }), queue(), ...lap(1), ...lap(2), ...lap(3), claim(), lose(4));
    expect(often.state?.facts.pardoned).toBe(3);
    expect(outcome(often.when(queue({ pardon: true })))).toBe('retries_exhausted');
    const replayed = given(
      ingest({ policy }),
      queue(),
      ...lap(1),
      claim(),
      lose(2),
      deadLetter(),
      replay(),
      queue(),
    );
    expect(replayed.state?.facts).not.toHaveProperty('pardoned');
  });

  test('only lost leases can be pardoned', () => {
    const { when } = given(ingest({ policy: once }), ...running, fail());
    expect(outcome(when(queue({ pardon: true })))).toBe('retries_exhausted');
  });

  test('a work item that is announced again holds all that is known, however large the payload', () => {
    const { gives } = given(ingest({ fingerprint: 'f' }), queue({ inlinePayload: false }));
    const event = gives(requeue());
    expect(event).toMatchObject({ kind: 'QUEUED', from: 'QUEUED', attempt: 0, round: 1 });
    expect(event.data).toMatchObject({ payload: { clip: 1 }, fingerprint: 'f' });
  });

  test('a task keeps the version that it was submitted for, over retries and replays; version 1 is not written down', () => {
    const { state } = given(
      ingest({ version: 2, policy: once }),
      ...running,
      fail(),
      deadLetter(),
      replay(),
      queue(),
    );
    expect(state?.facts.version).toBe(2);
    expect(given(ingest({ version: 1 })).state?.facts).not.toHaveProperty('version');
  });

  test('an error whose name or code the policy lists as not retryable ends the task', () => {
    const { gives } = given(ingest({ policy: { notRetryable: ['BadClip', 'E_CODEC'] } }), ...running);
    const next = (error: { name: string; code?: string }) =>
      gives(fail('w1', 1, { error: { message: '', ...error } })).data;
    expect(next({ name: 'BadClip' })).toMatchObject({ next: { final: 'not_retryable' } });
    expect(next({ name: 'Error', code: 'E_CODEC' })).toMatchObject({ next: { final: 'not_retryable' } });
    expect(next({ name: 'Error', code: 'OTHER' })).toMatchObject({ next: { retryInMs: 550 } });
  });

  test('an attempt that knows that trying again cannot help overrides the policy', () => {
    const { gives } = given(ingest(), ...running);
    expect(gives(fail('w1', 1, { final: 'deadline' })).data).toMatchObject({ next: { final: 'deadline' } });
  });

  test('RESCHEDULED says the priority before, what was asked for, and the due time that results', () => {
    const runAt = NOW + 60_000;
    const { gives } = given(ingest({ runAt, priority: 3 }));
    expect(gives(reschedule({ priority: 1 }))).toMatchObject({
      priority: 1,
      from: 'INGESTED',
      data: { fromPriority: 3, dueAt: runAt },
    });
    expect(gives(reschedule({ priority: 3, runAt: null }))).toMatchObject({
      priority: 3,
      data: { runAt: null, dueAt: null },
    });
    expect(gives(reschedule({ priority: undefined, runAt: 7 })).data).toEqual({ runAt: 7, dueAt: 7 });
  });

  test('DEAD_LETTER repeats the reason that the attempt ended with', () => {
    const { gives } = given(ingest(), ...running, fail('w1', 1, { final: 'poison' }));
    expect(gives(deadLetter()).data).toMatchObject({ reason: 'poison' });
  });

  test('every event names the command that caused it, its actor, its time and its trace', () => {
    const trace = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const { when } = given(ingest(), queue());
    expect(when({ ...claim('w9'), trace, at: NOW + 3 })).toMatchObject({
      value: { id: claim().eventId, actor: worker('w9'), trace, at: NOW + 3, from: 'QUEUED' },
    });
  });
});

describe('a debounced task', () => {
  const born = ingest({ runAt: NOW + 1_000, debounce: { key: 'k', until: NOW + 2_500, at: NOW } });
  const pushed = (submittedAt: number, payload: number) =>
    debounce({ submittedAt, payload, windowMs: 1_000 });

  test('has the payload of the last submission, and waits its window from then', () => {
    expect(given(born, pushed(NOW + 400, 1), pushed(NOW + 900, 2)).state).toMatchObject({
      status: 'INGESTED',
      payload: 2,
      payloadSeq: 30,
      dueAt: NOW + 1_900,
      facts: { debounce: { until: NOW + 2_500, at: NOW + 900 } },
    });
  });

  test('is never pushed beyond the longest wait, and still takes payloads then', () => {
    const { state } = given(born, pushed(NOW + 2_000, 1), pushed(NOW + 9_000, 2));
    expect(state).toMatchObject({ payload: 2, dueAt: NOW + 2_500 });
  });

  test('is handed out with the last payload, and without what only waiting needed', () => {
    const { state } = given(born, pushed(NOW + 400, 1), queue());
    expect(state).toMatchObject({ status: 'QUEUED', payload: 1 });
    expect(state?.facts.debounce).toBeUndefined();
  });

  test('ignores a submission that comes a second time, after a later one', () => {
    const late = debounce({ submittedAt: NOW + 300, once: true });
    expect(outcome(given(born, pushed(NOW + 400, 1)).when(late))).toBe('debounce_superseded');
    expect(outcome(given(born, pushed(NOW + 200, 1)).when(late))).toBe('RESCHEDULED');
  });

  test('takes a submission by a clock that is a little behind as the last one', () => {
    const { state } = given(born, pushed(NOW + 400, 1), pushed(NOW + 398, 2));
    expect(state).toMatchObject({ payload: 2, dueAt: NOW + 1_400 });
  });
});
