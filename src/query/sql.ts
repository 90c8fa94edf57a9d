import { STATUSES, type Status } from '../domain/events.ts';
import { Conditions, whereText } from './conditions.ts';
import type { TaskFilter } from './query.ts';

/** A statement with its values. A name makes it a prepared one: look-ups have one, lists are planned for their values. */
export interface Statement {
  readonly name?: string;
  readonly text: string;
  readonly values: unknown[];
}

export const checkpoints: Statement = {
  name: 'query-checkpoints',
  text: 'select name, seq from projection_checkpoint',
  values: [],
};

/** Without a tenant, an id that several tenants use gives the task that moved last. */
export const taskById = (id: string, tenant: string | undefined): Statement =>
  tenant === undefined
    ? {
        name: 'task-by-id',
        text: 'select * from tasks where id = $1 order by seq desc limit 1',
        values: [id],
      }
    : {
        name: 'task-of-tenant',
        text: 'select * from tasks where id = $1 and tenant = $2',
        values: [id, tenant],
      };

/** CARRIED is bookkeeping, not a transition. */
export function eventsOfTask(query: {
  id: string;
  tenant: string | undefined;
  after: number;
  limit: number;
}): Statement {
  const ofTenant = query.tenant === undefined ? '' : 'and tenant = $4';
  return {
    name: query.tenant === undefined ? 'events-of-id' : 'events-of-task',
    text: `select seq, event_id, kind, from_status, round, attempt, at, stored_at, actor_kind, actor_id, data
      from audit where task_id = $1 and seq > $2 and kind <> 'CARRIED' ${ofTenant}
      order by seq limit $3`,
    values: [query.id, query.after, query.limit, ...(query.tenant === undefined ? [] : [query.tenant])],
  };
}

export const queueCounts = (filter: {
  tenant?: string | undefined;
  type?: string | undefined;
}): Statement => ({
  name: 'queue-counts',
  text: `select tenant, type, priority, status, count from queues
    where count > 0 and ($1::text is null or tenant = $1) and ($2::text is null or type = $2)
    order by tenant, type, priority`,
  values: [filter.tenant ?? null, filter.type ?? null],
});

/**
 * Newest first. One branch a status, each with its own limit, so that every branch reads an index in order and stops
 * early however rare the status is. Statuses are literals, because only then the planner sees that the partial index
 * fits; they come from a closed set.
 */
export function taskList(filter: TaskFilter, page: { before: number | undefined; limit: number }): Statement {
  const wanted = new Conditions([page.limit]);
  wanted.require((p) => `submitted_seq < ${p}`, page.before);
  wanted.require((p) => `tenant = ${p}`, filter.tenant);
  wanted.require((p) => `type = ${p}`, filter.type);
  wanted.require((p) => `worker = ${p}`, filter.worker);
  wanted.require((p) => `submitted_at >= to_timestamp(${p}::bigint / 1000.0)`, filter.submittedFrom);
  wanted.require((p) => `submitted_at < to_timestamp(${p}::bigint / 1000.0)`, filter.submittedTo);
  wanted.require((p) => `submitted_seq <= ${p}`, filter.submittedUpToSeq);

  const statuses = filter.status === undefined || filter.status.length === 0 ? [undefined] : filter.status;
  const branches = [...new Set(statuses)].map((status) =>
    branch(status === undefined ? wanted.texts : [...wanted.texts, `status = '${literal(status)}'`]),
  );
  const text =
    branches.length === 1
      ? (branches[0] ?? '')
      : `select * from (${branches.map((each) => `(${each})`).join(' union all ')}) as found
         order by submitted_seq desc limit $1`;
  return { text, values: wanted.values };
}

/** Stops counting at `atMost`: for a dry run, never for a dashboard. */
export function taskCount(filter: TaskFilter, atMost: number): Statement {
  const { text, values } = taskList(filter, { before: undefined, limit: atMost });
  return { text: `select count(*) from (${text}) as found`, values };
}

const branch = (conditions: readonly string[]): string =>
  `select * from tasks ${whereText(conditions)}
   order by submitted_seq desc limit $1`;

function literal(status: Status): Status {
  if (!STATUSES.includes(status)) throw new TypeError(`${status} is not a status`);
  return status;
}
