import type { EventKind, Recorded, TaskEvent } from '../domain/events.ts';

export interface FeedFilter {
  /** Undefined: of all tenants. */
  readonly tenant: string | undefined;
  readonly type?: string | undefined;
  readonly task?: string | undefined;
  readonly kind?: readonly EventKind[] | undefined;
}

/** CARRIED is bookkeeping, not a transition. */
export const eventMatches = (event: TaskEvent, { tenant, type, task, kind }: FeedFilter): boolean =>
  event.kind !== 'CARRIED' &&
  (tenant === undefined || event.tenant === tenant) &&
  (type === undefined || event.type === type) &&
  (task === undefined || event.taskId === task) &&
  (kind === undefined || kind.includes(event.kind));

/** As a server-sent event; its id is where a client goes on. */
export const eventMessage = (recorded: Recorded): string =>
  `id: ${recorded.seq}\nevent: ${recorded.event.kind}\ndata: ${eventText(recorded)}\n\n`;

/** One line of JSON: what the history shows of the event, and whose it is. */
function eventText({ seq, storedAt, event }: Recorded): string {
  const { id, kind, taskId, tenant, type, from, round, attempt, priority, at, actor, data } = event;
  return JSON.stringify({
    seq,
    id,
    kind,
    taskId,
    tenant,
    type,
    from,
    round,
    attempt,
    priority,
    at: new Date(at).toISOString(),
    storedAt: new Date(storedAt).toISOString(),
    actor,
    data: shown(kind, data),
  });
}

/** Without the copies that only the next step needs. */
function shown(kind: EventKind, data: TaskEvent['data']): object {
  if (kind !== 'QUEUED' && kind !== 'REPLAYED' && kind !== 'DEAD_LETTER') return data;
  const { facts: _facts, carried: _carried, ...rest } = data as Record<string, unknown>;
  if (kind === 'QUEUED') delete rest['payload'];
  return rest;
}
