import { apply, type TaskChange } from '../../projections/tasks/apply.ts';
import { TaskledgerError } from '../domain/errors.ts';
import type { EventKind, Recorded, Status, TaskEvent } from '../domain/events.ts';
import type { Database } from './database.ts';
import type { Answer, QueueView, TaskView } from './query.ts';
import { type CountRow, type EventRow, queueViews } from './rows.ts';
import type { Statement } from './sql.ts';

/** A sequence, or what was stored by an instant (ms since 1970). */
export type PointInTime = { readonly seq: number } | { readonly at: number };

/** Events after the point that counters are taken back by: about a second of work. */
const MOST_EVENTS_BACK = 1_000_000;

/**
 * The past, from the audit: a task is folded from its events up to the point; counters are today's, minus what has
 * happened since. Both reach back as far as the audit is kept.
 */
export class AsOf {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async task(
    tenant: string | undefined,
    taskId: string,
    point: PointInTime,
  ): Promise<Answer<TaskView | undefined>> {
    const position = await this.#seqOf(point);
    const rows = await this.#database.rows<AuditRow>(eventsUpTo(taskId, tenant, position));
    const owner = rows.at(-1)?.tenant;
    const events = rows.filter((row) => row.tenant === owner).map(recordedOf);
    const [change] = apply(events);
    return { position, value: change === undefined ? undefined : viewOf(change) };
  }

  async queues(
    filter: { readonly tenant?: string | undefined; readonly type?: string | undefined },
    point: PointInTime,
  ): Promise<Answer<readonly QueueView[]>> {
    const position = await this.#seqOf(point);
    if (position === 0) return { position, value: [] };
    const [reflected] = await this.#database.rows<{ audit: string; queues: string }>(POSITIONS);
    const counted = Number(reflected?.queues ?? 0);
    if (counted - position > MOST_EVENTS_BACK)
      throw new TaskledgerError('point_too_far', { events: counted - position, limit: MOST_EVENTS_BACK });
    if (Number(reflected?.audit ?? 0) < counted)
      throw new TaskledgerError('position_not_reached', {
        position: Number(reflected?.audit ?? 0),
        wanted: counted,
      });
    return { position, value: queueViews(await this.#database.rows<CountRow>(countsAt(filter, position))) };
  }

  /** The last event that the audit has at the point; 0 before the first of the log. Throws `point_not_kept`. */
  async #seqOf(point: PointInTime): Promise<number> {
    const [row] = await this.#database.rows<{ seq: string | null }>(
      'seq' in point ? lastBySeq(point.seq) : lastByTime(point.at),
    );
    if (row !== undefined && row.seq !== null) return Number(row.seq);
    const [first] = await this.#database.rows(FIRST_OF_LOG);
    if (first === undefined) throw new TaskledgerError('point_not_kept');
    return 0;
  }
}

interface AuditRow extends EventRow {
  readonly task_id: string;
  readonly tenant: string;
  readonly type: string;
  readonly priority: number;
}

/** While it is kept, nothing of the log has been removed. */
const FIRST_OF_LOG: Statement = {
  name: 'as-of-first',
  text: 'select seq from audit where seq = 1',
  values: [],
};

const POSITIONS: Statement = {
  name: 'as-of-positions',
  text: `select (select seq from projection_checkpoint where name = 'audit') as audit,
    (select seq from projection_checkpoint where name = 'queues') as queues`,
  values: [],
};

const lastBySeq = (seq: number): Statement => ({
  name: 'as-of-seq',
  text: 'select max(seq) as seq from audit where seq <= $1',
  values: [seq],
});

/** Narrow windows first: block ranges find them at once, a day of a busy log takes long. `+ 0` keeps off the index by sequence. */
const lastByTime = (at: number): Statement => ({
  name: 'as-of-time',
  text: `select coalesce(
      (select max(seq + 0) from audit where stored_at <= t and stored_at > t - interval '1 minute'),
      (select max(seq + 0) from audit where stored_at <= t and stored_at > t - interval '1 hour'),
      (select max(seq) from audit where stored_at <= t)) as seq
    from (select to_timestamp($1::bigint / 1000.0) as t) as point`,
  values: [at],
});

const eventsUpTo = (taskId: string, tenant: string | undefined, seq: number): Statement => ({
  name: 'as-of-events',
  text: `select seq, event_id, kind, from_status, round, attempt, at, stored_at, actor_kind, actor_id, data,
      task_id, tenant, type, priority
    from audit where task_id = $1 and seq <= $2 and ($3::text is null or tenant = $3) order by seq`,
  values: [taskId, seq, tenant ?? null],
});

/** Events that change no status count nothing: what they leave is what they enter. RESCHEDULED may change the priority. */
const STATUSLESS: Readonly<Record<Exclude<EventKind, Status | 'RESCHEDULED'>, true>> = {
  CANCEL_REQUESTED: true,
  CARRIED: true,
  DISCARDED: true,
};

const countsAt = (
  { tenant, type }: { tenant?: string | undefined; type?: string | undefined },
  seq: number,
): Statement => ({
  name: 'as-of-counts',
  text: `
    with since as (
      select tenant, type, priority, kind, from_status,
        case when kind = 'RESCHEDULED' then (data ->> 'fromPriority')::smallint end as from_priority from audit
      where seq > $3 and seq <= (select seq from projection_checkpoint where name = 'queues')
        and kind <> all($4) and ($1::text is null or tenant = $1) and ($2::text is null or type = $2)),
    moved as (
      select tenant, type, priority, kind as status, -1 as delta from since where kind <> 'RESCHEDULED'
      union all
      select tenant, type, priority, from_status, 1 from since
      where kind <> 'RESCHEDULED' and from_status is not null
      union all
      select tenant, type, priority, from_status, -1 from since where from_priority is not null
      union all
      select tenant, type, from_priority, from_status, 1 from since where from_priority is not null
      union all
      select tenant, type, priority, status, count from queues
      where ($1::text is null or tenant = $1) and ($2::text is null or type = $2))
    select tenant, type, priority, status, sum(delta)::bigint as count from moved
    group by tenant, type, priority, status having sum(delta) > 0 order by tenant, type, priority`,
  values: [tenant ?? null, type ?? null, seq, Object.keys(STATUSLESS)],
});

const recordedOf = (row: AuditRow): Recorded => ({
  seq: Number(row.seq),
  storedAt: row.stored_at.getTime(),
  event: {
    v: 1,
    id: row.event_id,
    kind: row.kind,
    taskId: row.task_id,
    tenant: row.tenant,
    type: row.type,
    from: row.from_status,
    round: row.round,
    attempt: row.attempt,
    priority: row.priority,
    at: row.at.getTime(),
    actor: { kind: row.actor_kind, id: row.actor_id },
    data: row.data ?? {},
  } as unknown as TaskEvent,
});

const instant = (ms: number | null): string | null => (ms === null ? null : new Date(ms).toISOString());
const json = <T>(text: string | null): T | null => (text === null ? null : (JSON.parse(text) as T));

const viewOf = (change: TaskChange): TaskView => ({
  id: change.id,
  tenant: change.tenant,
  type: change.type,
  status: change.status as TaskView['status'],
  priority: change.priority,
  round: change.round,
  attempt: change.attempt,
  cancelRequested: change.cancelRequested,
  worker: change.worker,
  payload: json(change.payload),
  result: json(change.result),
  error: json(change.error),
  deadLetterReason: change.deadLetterReason as TaskView['deadLetterReason'],
  rejections: json(change.rejections),
  idempotencyKey: change.idempotencyKey,
  submittedAt: new Date(change.submittedAt).toISOString(),
  schedule: change.schedule,
  slotAt: instant(change.slotAt),
  runAt: instant(change.runAt),
  dueAt: instant(change.dueAt),
  deadlineAt: instant(change.deadlineAt),
  claimedAt: instant(change.claimedAt),
  startedAt: instant(change.startedAt),
  finishedAt: instant(change.finishedAt),
  updatedAt: new Date(change.updatedAt).toISOString(),
  seq: change.seq,
});
