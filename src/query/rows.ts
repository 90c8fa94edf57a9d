import type { Actor, DeadLetterReason, EventKind, Status, TaskError } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import type { EventView, QueueView, TaskView } from './query.ts';

/** Rows as the driver gives them: bigint is text, timestamptz is a Date, json is parsed. */
export interface TaskRow {
  readonly tenant: string;
  readonly id: string;
  readonly type: string;
  readonly status: Status;
  readonly priority: number;
  readonly round: number;
  readonly attempt: number;
  readonly cancel_requested: boolean;
  readonly submitted_seq: string;
  readonly seq: string;
  readonly submitted_at: Date;
  readonly updated_at: Date;
  readonly run_at: Date | null;
  readonly due_at: Date | null;
  readonly deadline_at: Date | null;
  readonly claimed_at: Date | null;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
  readonly worker: string | null;
  readonly dead_letter_reason: DeadLetterReason | null;
  readonly idempotency_key: string | null;
  readonly payload: Json;
  readonly result: Json;
  readonly error: TaskError | null;
  readonly rejections: TaskView['rejections'];
  readonly schedule: string | null;
  readonly slot_at: Date | null;
}

export interface EventRow {
  readonly seq: string;
  readonly event_id: string;
  readonly kind: EventKind;
  readonly from_status: Status | null;
  readonly round: number;
  readonly attempt: number;
  readonly at: Date;
  readonly stored_at: Date;
  readonly actor_kind: Actor['kind'];
  readonly actor_id: string;
  readonly data: Json;
}

export interface CountRow {
  readonly tenant: string;
  readonly type: string;
  readonly priority: number;
  readonly status: Status;
  readonly count: string;
}

const instant = (date: Date | null): string | null => date?.toISOString() ?? null;

export const taskView = (row: TaskRow): TaskView => ({
  id: row.id,
  tenant: row.tenant,
  type: row.type,
  status: row.status,
  priority: row.priority,
  round: row.round,
  attempt: row.attempt,
  cancelRequested: row.cancel_requested,
  worker: row.worker,
  payload: row.payload,
  result: row.result,
  error: row.error,
  deadLetterReason: row.dead_letter_reason,
  rejections: row.rejections,
  idempotencyKey: row.idempotency_key,
  schedule: row.schedule,
  slotAt: instant(row.slot_at),
  submittedAt: row.submitted_at.toISOString(),
  runAt: instant(row.run_at),
  dueAt: instant(row.due_at),
  deadlineAt: instant(row.deadline_at),
  claimedAt: instant(row.claimed_at),
  startedAt: instant(row.started_at),
  finishedAt: instant(row.finished_at),
  updatedAt: row.updated_at.toISOString(),
  seq: Number(row.seq),
});

export const eventView = (row: EventRow): EventView => ({
  seq: Number(row.seq),
  id: row.event_id,
  kind: row.kind,
  from: row.from_status,
  round: row.round,
  attempt: row.attempt,
  at: row.at.toISOString(),
  storedAt: row.stored_at.toISOString(),
  actor: { kind: row.actor_kind, id: row.actor_id },
  data: row.data ?? {},
});

/** Rows of one queue lie beside each other. */
export function queueViews(rows: readonly CountRow[]): QueueView[] {
  const views: (QueueView & { counts: Partial<Record<Status, number>> })[] = [];
  for (const { tenant, type, priority, status, count } of rows) {
    let view = views.at(-1);
    if (view === undefined || view.tenant !== tenant || view.type !== type || view.priority !== priority) {
      view = { tenant, type, priority, counts: {} };
      views.push(view);
    }
    view.counts[status] = Number(count);
  }
  return views;
}
