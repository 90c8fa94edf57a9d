import { describe, expect, test } from 'vitest';
import { TaskledgerError } from '../domain/errors.ts';
import type { Recorded, TaskEvent } from '../domain/events.ts';
import { fold } from '../domain/task.ts';
import type { EventLog } from '../log/event-log.ts';
import { createIntake, type IntakeContext, type IntakeOptions } from './intake.ts';

const KEY = '0197b1f0-0000-7000-8000-00000000000a';
const context: IntakeContext = { actor: { kind: 'user', id: 'u' } };

/** A log that holds one task's events in memory. */
function setup({
  append,
  events = [],
  ...over
}: { append?: EventLog['append']; events?: Recorded[] } & Partial<IntakeOptions> = {}) {
  const outcomes: string[] = [];
  const log: EventLog = {
    append:
      append ??
      (async (event: TaskEvent, expected) => {
        const lastSeq = events.at(-1)?.seq ?? 0;
        if (lastSeq !== expected) return { status: 'conflict', lastSeq };
        events.push({ seq: lastSeq + 1, storedAt: event.at, event });
        return { status: 'stored', seq: lastSeq + 1 };
      }),
    readTask: async () => events,
    readLasts: async () => events,
    readState: async () => fold(events),
    readEvent: async () => undefined,
    bounds: async () => ({ firstSeq: 1, lastSeq: events.length }),
  };
  const intake = createIntake({
    log,
    types: { get: () => undefined },
    config: { maxPayloadBytes: 1_000, maxPayloadDepth: 8, hotWindowHours: 24 },
    windows: { clock: { now: () => 5 }, places: { change: async () => ({ id: KEY, seq: 0 }) } },
    clock: { now: () => 5 },
    backlog: {
      full: (type) => (type === 'full' ? { type, waiting: 9, limit: 9 } : undefined),
      fullDelayed: (type) => (type === 'late' ? { type, waiting: 9, limit: 9 } : undefined),
    },
    observe: (outcome) => outcomes.push(outcome),
    ...over,
  });
  return { intake, events, outcomes };
}

const submission = { type: 'mail', payload: { a: 1 }, id: KEY };

describe('a log that confirms nothing', () => {
  const silent = { append: () => new Promise<never>(() => {}), confirmWithinMs: 1 };

  test.each([
    { what: 'of the silence', unstored: () => undefined, reason: 'nothing heard within 1 ms' },
    { what: 'of what is known to be wrong', unstored: () => 'the disk is full', reason: 'the disk is full' },
  ])('is told of after a while, with word $what', async ({ unstored, reason }) => {
    const { intake } = setup({ ...silent, unstored });
    expect(await intake.submit('acme', submission, context)).toMatchObject({
      ok: false,
      error: { code: 'log_unavailable', details: { reason } },
    });
  });
});

describe('a repeat', () => {
  test('of a task without a stored fingerprint is told from a conflict by its payload', async () => {
    const { intake, events } = setup();
    await intake.submit('acme', submission, context);
    const [first] = events;
    if (first?.event.kind !== 'INGESTED') throw new Error('not ingested');
    delete first.event.data.fingerprint;
    expect(await intake.submit('acme', submission, context)).toMatchObject({
      ok: true,
      replayed: true,
      seq: 1,
    });
    expect(await intake.submit('acme', { ...submission, payload: 2 }, context)).toMatchObject({
      ok: false,
      error: { code: 'idempotency_conflict' },
    });
  });

  test('of a task whose beginning has aged out is told by the state that was carried on', async () => {
    const { intake, events } = setup();
    await intake.submit('acme', submission, context);
    const state = fold(events);
    if (state === undefined) throw new Error('no state');
    const { status, facts, cancelRequested, fingerprint, payload } = state;
    const [first] = events.splice(0);
    if (first === undefined || fingerprint === undefined) throw new Error('no first event');
    const { data: _data, ...envelope } = first.event;
    const carried = {
      ...envelope,
      kind: 'CARRIED',
      from: 'INGESTED',
      data: { state: { status, facts, cancelRequested, fingerprint, payload } },
    } as TaskEvent;
    events.push({ seq: 9, storedAt: 5, event: carried });
    expect(await intake.submit('acme', submission, context)).toMatchObject({
      ok: true,
      replayed: true,
      seq: 9,
    });
    expect(await intake.submit('acme', { ...submission, type: 'letter' }, context)).toMatchObject({
      ok: false,
      error: { code: 'idempotency_conflict' },
    });
  });

  test('of a key whose task was REJECTED is a conflict', async () => {
    const { intake } = setup();
    const reasons = [{ code: 'request_invalid', message: 'no' }];
    await intake.reject({ tenant: 'acme', type: 'mail', taskId: KEY, reasons, actor: context.actor });
    expect(await intake.submit('acme', submission, context)).toMatchObject({
      ok: false,
      error: { code: 'idempotency_conflict' },
    });
  });
});

test('a log that does not answer is an outcome that may be retried with the same key', async () => {
  const { intake, outcomes } = setup({
    append: async () => {
      throw new TaskledgerError('log_unavailable', { reason: 'no responders' });
    },
  });
  const outcome = await intake.submit('acme', submission, context);
  expect(outcome).toMatchObject({
    ok: false,
    error: { code: 'log_unavailable', status: 503, retryable: true },
  });
  expect(outcomes).toEqual(['log_unavailable']);
});

test('a defect is thrown, not answered', async () => {
  const { intake } = setup({
    append: async () => {
      throw new TypeError('oops');
    },
  });
  await expect(intake.submit('acme', submission, context)).rejects.toThrow('oops');
});

test('a full type is refused, but not what has been accepted elsewhere already', async () => {
  const { intake, events } = setup();
  const full = { ...submission, type: 'full' };
  expect(await intake.submit('acme', full, context)).toMatchObject({
    ok: false,
    error: { code: 'backlog_full' },
  });
  expect(events).toEqual([]);
  expect(await intake.submit('acme', full, { ...context, ignoreBacklog: true })).toMatchObject({ ok: true });
});

test('when too many wait for a time, only what is to wait for one as well is refused, by message too', async () => {
  const { intake } = setup();
  const late = { ...submission, type: 'late' };
  const delayed = { ...late, delayMs: 1_000 };
  for (const each of [context, { ...context, ignoreBacklog: true }])
    expect(await intake.submit('acme', delayed, each)).toMatchObject({
      ok: false,
      error: { code: 'delayed_full', status: 429, retryable: true, details: { waiting: 9, limit: 9 } },
    });
  expect(await intake.submit('acme', { ...late, delayMs: 0 }, context)).toMatchObject({ ok: true });
});

test('the delay of a message counts from when it was sent, however long it has waited', async () => {
  const { intake, events } = setup();
  const late = { ...submission, delayMs: 1_000, deadlineAt: '1970-01-01T00:00:00.003Z' };
  const sent = { ...context, sentAt: -998, ignoreBacklog: true };
  expect(await intake.submit('acme', late, context)).toMatchObject({ error: { field: 'deadlineAt' } });
  expect(await intake.submit('acme', late, sent)).toMatchObject({ ok: true });
  expect(events[0]?.event.data).toMatchObject({ runAt: 2, deadlineAt: 3 });
});

test.each(['nonsense', '', 'x'.repeat(200)])('the trace %j is dropped', async (trace) => {
  const { intake, events } = setup();
  await intake.submit('acme', submission, { ...context, trace });
  expect(events[0]?.event.trace).toBeUndefined();
});
