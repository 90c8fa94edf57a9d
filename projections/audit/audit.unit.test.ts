import { expect, test } from 'vitest';
import type { Command } from '../../src/domain/commands.ts';
import {
  carry,
  claim,
  complete,
  deadLetter,
  fail,
  given,
  ingest,
  NOW,
  queue,
  replay,
  start,
  TASK_ID,
} from '../../test/support/life.ts';
import { apply } from './apply.ts';
import { dayOf, firstDayKept, partitionOf } from './partitions.ts';

const rowsOf = (...commands: Command[]) => apply(given(...commands).events);

test('every event is a row with who, when and from what to what', () => {
  const rows = rowsOf(ingest(), queue(), claim('w7'));
  expect(rows.map(({ seq, kind, from }) => [seq, kind, from])).toEqual([
    [10, 'INGESTED', null],
    [20, 'QUEUED', 'INGESTED'],
    [30, 'CLAIMED', 'QUEUED'],
  ]);
  expect(rows[2]).toEqual({
    seq: 30,
    storedAt: NOW + 7,
    at: NOW,
    eventId: '00000000-0000-4000-8000-000000000003',
    taskId: TASK_ID,
    tenant: 'acme',
    type: 'transcode',
    kind: 'CLAIMED',
    from: 'QUEUED',
    round: 1,
    attempt: 1,
    priority: 2,
    actorKind: 'worker',
    actorId: 'w7',
    trace: null,
    data: null,
  });
});

test('a payload is recorded where it came in, not where a copy rode along', () => {
  const once = { maxRetries: 0 };
  const edited = { payload: { clip: 2 } };
  const rows = rowsOf(
    ingest({ policy: once }),
    queue(),
    carry(),
    claim(),
    start(),
    fail(),
    deadLetter(),
    replay(edited),
  );
  const withPayload = rows.filter(({ data }) => data?.includes('"payload"')).map(({ kind }) => kind);
  expect(withPayload).toEqual(['INGESTED', 'REPLAYED']);
});

test('what an event alone knows is kept whole', () => {
  expect(rowsOf(ingest(), queue(), claim(), start(), complete()).at(-1)?.data).toBe(
    '{"result":{"frames":250},"runMs":12}',
  );
});

test('partitions are days in UTC, and the last ones are kept, today included', () => {
  const lateEvening = Date.parse('2026-01-01T23:59:59.999Z');
  expect(partitionOf(dayOf(lateEvening))).toBe('audit_20260101');
  expect(partitionOf(dayOf(lateEvening + 1))).toBe('audit_20260102');
  expect(partitionOf(firstDayKept(lateEvening, 1))).toBe('audit_20260101');
  expect(partitionOf(firstDayKept(lateEvening, 2))).toBe('audit_20251231');
});
