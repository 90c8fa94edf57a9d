import type { Recorded, TaskEvent } from '../../src/domain/events.ts';
import { jsonText } from '../engine/sql-text.ts';

/** A row of `audit`, in the columns' order. Instants are ms since 1970; `data` is JSON text, null when there is none. */
export interface AuditRow {
  readonly seq: number;
  /** By the stream that it was read from: TASKS, or HISTORY, a moment later, for what the hot window no longer had. */
  readonly storedAt: number;
  /** When it happened, by the servers' time as its writer knew it. */
  readonly at: number;
  readonly eventId: string;
  readonly taskId: string;
  readonly tenant: string;
  readonly type: string;
  readonly kind: string;
  readonly from: string | null;
  readonly round: number;
  readonly attempt: number;
  readonly priority: number;
  readonly actorKind: string;
  readonly actorId: string;
  readonly trace: string | null;
  readonly data: string | null;
}

/** One row an event. */
export const apply = (batch: readonly Recorded[]): AuditRow[] =>
  batch.map(({ seq, storedAt, event }) => ({
    seq,
    storedAt,
    at: event.at,
    eventId: event.id,
    taskId: event.taskId,
    tenant: event.tenant,
    type: event.type,
    kind: event.kind,
    from: event.from,
    round: event.round,
    attempt: event.attempt,
    priority: event.priority,
    actorKind: event.actor.kind,
    actorId: event.actor.id,
    trace: event.trace ?? null,
    data: dataText(event),
  }));

/** The payload is recorded where it came in (INGESTED, REPLAYED); the copies of what is known that ride along are left out. */
function dataText(event: TaskEvent): string | null {
  switch (event.kind) {
    case 'CLAIMED':
    case 'PROCESSING':
      return null;
    case 'QUEUED': {
      const { payload: _copy, ...rest } = event.data;
      return jsonText(rest);
    }
    case 'REPLAYED': {
      const { carried: _copy, ...rest } = event.data;
      return jsonText(rest);
    }
    case 'DEAD_LETTER': {
      const { facts: _copy, ...rest } = event.data;
      return jsonText(rest);
    }
    case 'CARRIED': {
      const { payload: _copy, ...state } = event.data.state;
      return jsonText({ state });
    }
    default:
      return jsonText(event.data);
  }
}
