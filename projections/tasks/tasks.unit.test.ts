import { describe, expect, test } from 'vitest';
import type { Command } from '../../src/domain/commands.ts';
import {
  cancel,
  carry,
  claim,
  complete,
  deadLetter,
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
} from '../../test/support/life.ts';
import { apply, type TaskChange } from './apply.ts';

const running = [queue(), claim(), start()];
const once = { maxRetries: 0 };

/** The one change after living through the commands, in one batch. */
function rowAfter(...commands: Command[]): TaskChange {
  const [change, ...others] = apply(given(...commands).events);
  expect(others).toEqual([]);
  if (change === undefined) throw new Error('no change');
  return change;
}

describe('the row of a task after', () => {
  test('its submission says everything that the submission said', () => {
    const change = rowAfter(
      ingest({
        runAt: NOW + 50,
        deadlineAt: NOW + 90,
        priority: 4,
        idempotencyKey: 'order-1',
        schedule: { name: 'nightly', slotAt: NOW - 1 },
      }),
    );
    expect(change).toEqual({
      tenant: 'acme',
      id: '01890a5d-ac96-774b-bcce-b302099a8057',
      type: 'transcode',
      status: 'INGESTED',
      priority: 4,
      round: 1,
      attempt: 0,
      cancelRequested: false,
      submittedSeq: 10,
      seq: 10,
      submittedAt: NOW,
      updatedAt: NOW,
      runAt: NOW + 50,
      dueAt: NOW + 50,
      deadlineAt: NOW + 90,
      claimedAt: null,
      startedAt: null,
      finishedAt: null,
      worker: null,
      deadLetterReason: null,
      idempotencyKey: 'order-1',
      payload: '{"clip":1}',
      result: null,
      error: null,
      rejections: null,
      schedule: 'nightly',
      slotAt: NOW - 1,
    });
  });

  test('a whole life in one batch is one change with its end', () => {
    expect(rowAfter(ingest(), ...running, complete())).toMatchObject({
      status: 'COMPLETED',
      submittedSeq: 10,
      seq: 50,
      attempt: 1,
      worker: 'w1',
      claimedAt: NOW,
      startedAt: NOW,
      finishedAt: NOW,
      result: '{"frames":250}',
      payload: '{"clip":1}',
      dueAt: null,
    });
  });

  test('a failure with retries left has its error and when it is due', () => {
    expect(rowAfter(ingest(), ...running, fail())).toMatchObject({
      status: 'FAILED',
      error: '{"name":"Error","message":"codec missing"}',
      dueAt: NOW + 550,
      finishedAt: null,
    });
  });

  test('a lost lease is due again and keeps the lost worker in sight', () => {
    expect(rowAfter(ingest(), ...running, lose())).toMatchObject({
      status: 'RETRY_CLAIMED',
      worker: 'w1',
      dueAt: NOW + 550,
    });
  });

  test('anything is the same whenever its events were stored: HISTORY stores them later', () => {
    const { events } = given(ingest(), ...running, fail());
    const later = events.map((recorded) => ({ ...recorded, storedAt: recorded.storedAt + 5_000 }));
    expect(apply(later)).toEqual(apply(events));
  });

  test('a second claim has not started yet', () => {
    expect(rowAfter(ingest(), ...running, lose(), queue(), claim('w2'))).toMatchObject({
      attempt: 2,
      worker: 'w2',
      startedAt: null,
    });
  });

  test('a dead letter has its reason and is finished; a replay is neither', () => {
    const dead = [ingest({ policy: once, deadlineAt: NOW + 90 }), ...running, fail(), deadLetter()];
    expect(rowAfter(...dead)).toMatchObject({
      status: 'DEAD_LETTER',
      deadLetterReason: 'retries',
      finishedAt: NOW,
      deadlineAt: NOW + 90,
    });
    expect(rowAfter(...dead, replay({ payload: { clip: 2 } }))).toMatchObject({
      status: 'REPLAYED',
      round: 2,
      deadLetterReason: null,
      finishedAt: null,
      deadlineAt: null,
      payload: '{"clip":2}',
      error: '{"name":"Error","message":"codec missing"}',
    });
  });

  test('a request to cancel leaves the status, and the cancellation ends it', () => {
    expect(rowAfter(ingest(), ...running, requestCancel())).toMatchObject({
      status: 'PROCESSING',
      cancelRequested: true,
      finishedAt: null,
    });
    expect(rowAfter(ingest(), ...running, requestCancel(), cancel())).toMatchObject({
      status: 'CANCELLED',
      cancelRequested: true,
      finishedAt: NOW,
    });
  });

  test('a rejection has its reasons and no payload', () => {
    expect(rowAfter(reject())).toMatchObject({
      status: 'REJECTED',
      payload: null,
      rejections: '[{"code":"request_invalid","field":"payload","message":"is missing"}]',
      finishedAt: NOW,
    });
  });

  test('RESCHEDULED changes priority and due time, and keeps the due time that it does not change', () => {
    const runAt = NOW + 60_000;
    expect(apply(given(ingest({ runAt, priority: 3 }), reschedule({ priority: 1 })).events)).toMatchObject([
      { status: 'INGESTED', priority: 1, runAt, dueAt: runAt },
    ]);
    expect(apply(given(ingest({ runAt }), reschedule({ runAt: null })).events)).toMatchObject([
      { status: 'INGESTED', dueAt: null },
    ]);
  });

  test('CARRIED changes no status', () => {
    expect(rowAfter(ingest({ runAt: NOW + 50 }), carry())).toMatchObject({
      status: 'INGESTED',
      dueAt: NOW + 50,
      seq: 20,
    });
  });
});

describe('a batch that does not begin the task', () => {
  const { events } = given(ingest({ deadlineAt: NOW + 90 }), ...running, complete());

  test('says so by a negative place', () => {
    const [change] = apply(events.slice(2));
    expect(change).toMatchObject({ submittedSeq: -30, seq: 50, payload: null, deadlineAt: null });
  });

  test('still knows facts and payload from QUEUED, in case the beginning was lost', () => {
    const [change] = apply(events.slice(1));
    expect(change).toMatchObject({ submittedAt: NOW, deadlineAt: NOW + 90, payload: '{"clip":1}' });
  });

  test('knows everything but the past from CARRIED', () => {
    const carried = given(ingest({ deadlineAt: NOW + 90 }), queue(), claim(), carry()).events.slice(-1);
    expect(apply(carried)[0]).toMatchObject({
      status: 'CLAIMED',
      submittedAt: NOW,
      deadlineAt: NOW + 90,
      worker: 'w1',
      payload: '{"clip":1}',
    });
  });
});

test('an id that is submitted again after it was forgotten begins a new row', () => {
  const first = given(ingest(), ...running, complete()).events;
  const again = given(ingest({ payload: 'again' })).events.map((recorded) => ({ ...recorded, seq: 60 }));
  expect(apply([...first, ...again])).toMatchObject([
    { status: 'INGESTED', submittedSeq: 60, payload: '"again"', result: null, worker: null, attempt: 0 },
  ]);
});

test('the same id in two tenants is two tasks', () => {
  const { events } = given(ingest());
  const [first] = events;
  if (first === undefined) throw new Error('no event');
  expect(apply([first, { ...first, event: { ...first.event, tenant: 'zeta' } }])).toHaveLength(2);
});
