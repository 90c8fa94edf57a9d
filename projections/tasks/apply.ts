import type { EventOf, Recorded, Status, TaskEvent } from '../../src/domain/events.ts';
import { TERMINAL } from '../../src/domain/task.ts';
import { jsonText } from '../engine/sql-text.ts';

/**
 * What a batch changes in one row of `tasks`, in the columns' order. Instants are ms since 1970, JSON columns hold text.
 * They are the actors' times, because HISTORY does not keep when TASKS stored an event: a task's row is the same
 * whichever of the two it is built from. (The dispatcher counts a retry's backoff from the storing, a moment later.)
 * `null` means "says nothing" for what the SQL merges, and "none" for what the last event alone decides.
 */
export interface TaskChange {
  readonly tenant: string;
  readonly id: string;
  type: string;
  status: string;
  priority: number;
  round: number;
  attempt: number;
  cancelRequested: boolean;
  /** Positive when the batch has the task's first event; else minus the sequence of the first event in the batch. */
  submittedSeq: number;
  seq: number;
  submittedAt: number;
  updatedAt: number;
  runAt: number | null;
  dueAt: number | null;
  deadlineAt: number | null;
  claimedAt: number | null;
  startedAt: number | null;
  finishedAt: number | null;
  worker: string | null;
  deadLetterReason: string | null;
  idempotencyKey: string | null;
  payload: string | null;
  result: string | null;
  error: string | null;
  rejections: string | null;
  schedule: string | null;
  slotAt: number | null;
}

/**
 * Folds a batch into one change a task. Where the batch ends must not matter: folding events in two batches and merging
 * the second into the first's row (sql.ts) gives the same row as folding them in one.
 */
export function apply(batch: readonly Recorded[]): TaskChange[] {
  const changes = new Map<string, TaskChange>();
  for (const recorded of batch) {
    const { event } = recorded;
    const key = `${event.tenant} ${event.taskId}`;
    let change = changes.get(key);
    if (change === undefined || event.from === null) {
      change = begin(recorded);
      changes.set(key, change);
    }
    fold(change, recorded);
  }
  return [...changes.values()];
}

function begin({ event, seq }: Recorded): TaskChange {
  return {
    tenant: event.tenant,
    id: event.taskId,
    type: event.type,
    status: '',
    priority: event.priority,
    round: event.round,
    attempt: event.attempt,
    cancelRequested: false,
    submittedSeq: event.from === null ? seq : -seq,
    seq,
    submittedAt: submittedAt(event) ?? event.at,
    updatedAt: event.at,
    runAt: null,
    dueAt: null,
    deadlineAt: null,
    claimedAt: null,
    startedAt: null,
    finishedAt: null,
    worker: null,
    deadLetterReason: null,
    idempotencyKey: null,
    payload: null,
    result: null,
    error: null,
    rejections: null,
    schedule: null,
    slotAt: null,
  };
}

function fold(change: TaskChange, { event, seq }: Recorded): void {
  change.status = statusAfter(event);
  change.priority = event.priority;
  change.round = event.round;
  change.attempt = event.attempt;
  change.seq = seq;
  change.updatedAt = event.at;
  change.dueAt = dueAt(event);
  // A discarded dead letter ended when it died.
  if (event.kind !== 'DISCARDED') change.finishedAt = TERMINAL.has(event.kind as never) ? event.at : null;
  switch (event.kind) {
    case 'INGESTED':
      change.payload = jsonText(event.data.payload);
      change.idempotencyKey = event.data.idempotencyKey ?? null;
      change.runAt = event.data.runAt ?? null;
      change.deadlineAt = event.data.deadlineAt ?? null;
      change.schedule = event.data.schedule?.name ?? null;
      change.slotAt = event.data.schedule?.slotAt ?? null;
      break;
    case 'REJECTED':
      change.rejections = jsonText(event.data.reasons);
      break;
    case 'QUEUED':
      change.deadlineAt = event.data.facts.deadlineAt ?? null;
      if (event.data.payload !== undefined) change.payload ??= jsonText(event.data.payload);
      break;
    case 'CLAIMED':
      change.worker = event.actor.id;
      change.claimedAt = event.at;
      change.startedAt = null;
      break;
    case 'PROCESSING':
      change.startedAt = event.at;
      break;
    case 'COMPLETED':
      change.result = event.data.result === undefined ? null : jsonText(event.data.result);
      break;
    case 'FAILED':
      change.error = jsonText(event.data.error);
      break;
    case 'DEAD_LETTER':
      change.deadLetterReason = event.data.reason;
      break;
    case 'REPLAYED':
      if (event.data.payload !== undefined) change.payload = jsonText(event.data.payload);
      change.deadlineAt = null;
      change.deadLetterReason = null;
      change.cancelRequested = false;
      break;
    case 'CANCEL_REQUESTED':
      change.cancelRequested = true;
      break;
    case 'CARRIED':
      foldCarried(change, event);
      break;
    case 'RESCHEDULED':
      if (event.data.payload !== undefined) change.payload = jsonText(event.data.payload);
      break;
    case 'RETRY_CLAIMED':
    case 'CANCELLED':
    case 'DISCARDED':
      break;
    default:
      event satisfies never;
  }
}

function foldCarried(change: TaskChange, { data: { state } }: EventOf<'CARRIED'>): void {
  change.cancelRequested = state.cancelRequested;
  change.deadlineAt = state.facts.deadlineAt ?? null;
  if (state.holder !== undefined) change.worker ??= state.holder;
  if (state.payload !== undefined) change.payload ??= jsonText(state.payload);
}

/** CANCEL_REQUESTED, CARRIED, DISCARDED and RESCHEDULED change no status. */
function statusAfter(event: TaskEvent): Status {
  if (event.kind === 'CARRIED') return event.data.state.status;
  if (event.kind === 'DISCARDED') return 'DEAD_LETTER';
  if (event.kind === 'RESCHEDULED') return event.from ?? 'INGESTED';
  return event.kind === 'CANCEL_REQUESTED' ? (event.from ?? 'PROCESSING') : event.kind;
}

/** The last event alone decides whether something is due. */
function dueAt(event: TaskEvent): number | null {
  switch (event.kind) {
    case 'INGESTED':
      return event.data.runAt ?? null;
    case 'FAILED':
    case 'RETRY_CLAIMED':
      return 'retryInMs' in event.data.next ? event.at + event.data.next.retryInMs : null;
    case 'RESCHEDULED':
      return event.data.dueAt;
    case 'CARRIED':
      return event.data.state.dueAt ?? null;
    case 'REJECTED':
    case 'QUEUED':
    case 'CLAIMED':
    case 'PROCESSING':
    case 'COMPLETED':
    case 'DEAD_LETTER':
    case 'REPLAYED':
    case 'CANCELLED':
    case 'CANCEL_REQUESTED':
    case 'DISCARDED':
      return null;
    default:
      event satisfies never;
      return null;
  }
}

function submittedAt(event: TaskEvent): number | undefined {
  switch (event.kind) {
    case 'INGESTED':
    case 'REJECTED':
      return event.at;
    case 'QUEUED':
      return event.data.facts.submittedAt;
    case 'CARRIED':
      return event.data.state.facts.submittedAt;
    default:
      return undefined;
  }
}
