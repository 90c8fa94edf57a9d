import type { NextStep } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import type { EventAnswer, Task } from './answers.ts';
import type { Session } from './connection.ts';
import { type Column, cut, facts, printable, tableOfTenants } from './table.ts';
import { duration, instant, relative } from './time.ts';

/** How tasks and their events are shown to people. */

const compact = (value: Json): string => JSON.stringify(value);

export function taskText(task: Task, { now, width }: { now: number; width: number }): string {
  const { status, cancelRequested, startedAt, finishedAt, error, deadLetterReason, rejections } = task;
  const took =
    startedAt !== null && finishedAt !== null
      ? `, took ${duration(Date.parse(finishedAt) - Date.parse(startedAt))}`
      : '';
  return facts(
    [
      ['Task', task.id],
      ['Status', cancelRequested && finishedAt === null ? `${status}, cancellation requested` : status],
      ['Type', task.type],
      ['Tenant', task.tenant],
      ['Priority', String(task.priority)],
      ['Attempt', task.round > 1 ? `${task.attempt} (round ${task.round})` : String(task.attempt)],
      ['Worker', task.worker ?? undefined],
      ['Submitted', instant(task.submittedAt, now)],
      ['Due', task.dueAt === null ? undefined : instant(task.dueAt, now)],
      ['Deadline', task.deadlineAt === null ? undefined : instant(task.deadlineAt, now)],
      ['Started', startedAt === null ? undefined : instant(startedAt, now)],
      ['Finished', finishedAt === null ? undefined : `${instant(finishedAt, now)}${took}`],
      ['Payload', compact(task.payload)],
      ['Result', status === 'COMPLETED' ? compact(task.result) : undefined],
      ['Last error', error === null ? undefined : `${error.name}: ${error.message}`],
      ['Reason', deadLetterReason ?? undefined],
      ...(rejections ?? []).map(
        ({ field, message }) => ['Rejected', field === undefined ? message : `${field}: ${message}`] as const,
      ),
    ],
    width,
  );
}

const TASK_COLUMNS: readonly Column[] = [
  { title: 'TASK' },
  { title: 'TYPE', flexible: true },
  { title: 'STATUS' },
  { title: 'ATTEMPT', align: 'right' },
  { title: 'SUBMITTED', align: 'right' },
];

export const taskTable = (
  tasks: readonly Task[],
  { tenant, terminal }: Pick<Session, 'tenant' | 'terminal'>,
): string =>
  tableOfTenants(
    TASK_COLUMNS,
    tasks.map(({ tenant: owner, id, type, status, attempt, submittedAt }) => [
      owner,
      id,
      type,
      status,
      String(attempt),
      relative(submittedAt, terminal.clock.now()),
    ]),
    { tenant, width: terminal.columns },
  );

/** Wide enough for every kind of event, so that lines printed one by one stand in columns. */
const KIND_WIDTH = 'CANCEL_REQUESTED'.length;

/** One line for an event: how long after `sinceMs` it was stored, what happened, by whom, and what is worth knowing. */
export function eventLine(
  event: EventAnswer,
  { sinceMs, width }: { sinceMs: number; width: number },
): string {
  const after = `+${duration(Date.parse(event.storedAt) - sinceMs)}`;
  const attempt = event.attempt === 0 ? '' : `#${event.attempt}`;
  const line = [
    after.padStart(8),
    event.kind.padEnd(KIND_WIDTH),
    attempt.padEnd(3),
    event.actor.id,
    detail(event),
  ];
  return cut(printable(line.join('  ')), width).trimEnd();
}

function detail({ kind, data }: EventAnswer): string {
  switch (kind) {
    case 'INGESTED':
      return compact(data.payload);
    case 'REJECTED':
      return data.reasons.map(({ message }) => message).join('; ');
    case 'COMPLETED':
      return data.result === undefined ? '' : compact(data.result);
    case 'FAILED':
      return `${data.error.name}: ${data.error.message} (${whatFollows(data.next)})`;
    case 'RETRY_CLAIMED':
      return `${data.reason} of ${data.lostWorker} (${whatFollows(data.next)})`;
    case 'DEAD_LETTER':
    case 'DISCARDED':
    case 'CANCEL_REQUESTED':
    case 'CANCELLED':
      return data.reason ?? '';
    case 'REPLAYED':
      return data.note ?? '';
    case 'RESCHEDULED':
      return [
        ...(data.fromPriority === undefined ? [] : [`was of priority ${data.fromPriority}`]),
        data.dueAt === null ? 'as soon as possible' : `due ${new Date(data.dueAt).toISOString()}`,
      ].join(', ');
    case 'QUEUED':
    case 'CLAIMED':
    case 'PROCESSING':
    case 'CARRIED':
      return '';
    default:
      return kind satisfies never;
  }
}

const whatFollows = (next: NextStep): string =>
  'final' in next ? `final: ${next.final}` : `retry in ${duration(next.retryInMs)}`;
