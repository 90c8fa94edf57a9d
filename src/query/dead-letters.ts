import type { LetterRow } from '../../projections/dead_letters/row.ts';
import type { DeadLetterReason, Facts, TaskError } from '../domain/events.ts';
import { Conditions, whereText } from './conditions.ts';
import type { Statement } from './sql.ts';

export const LETTER_STATES = ['open', 'replayed', 'discarded'] as const;
export type LetterState = (typeof LETTER_STATES)[number];

/** A task that died, and what became of it since. Instants are ISO 8601 in UTC; null means "not (yet)" or "unknown". */
export interface LetterView {
  readonly id: string;
  readonly tenant: string;
  readonly type: string;
  readonly state: LetterState;
  readonly reason: DeadLetterReason;
  readonly fingerprint: string;
  /** The last failure of the round that died; null when no attempt had failed. */
  readonly error: TaskError | null;
  readonly worker: string | null;
  readonly workerVersion: string | null;
  readonly priority: number;
  readonly attempt: number;
  readonly round: number;
  readonly firstFailedAt: string | null;
  readonly firstDeadAt: string;
  readonly deadAt: string;
  readonly settledAt: string | null;
  /** Who replayed or discarded it: kind and id. */
  readonly settledBy: string | null;
  readonly note: string | null;
  /** Sequence of the DEAD_LETTER event. */
  readonly seq: number;
}

/** Dead letters of one type that died of the same error. */
export interface LetterGroupView {
  readonly type: string;
  readonly fingerprint: string;
  readonly errorName: string;
  /** The message without what differs from one occurrence to the next. */
  readonly shape: string;
  readonly open: number;
  readonly replayed: number;
  readonly discarded: number;
  /** Ever: a task that was replayed and died again counts twice. */
  readonly deaths: number;
  readonly firstSeenAt: string;
  readonly lastSeenAt: string;
  /** With their open letters, the most first. */
  readonly tenants: readonly { readonly tenant: string; readonly open: number }[];
  /** The occurrence that was seen last. */
  readonly sample: { readonly id: string; readonly tenant: string; readonly message: string };
}

export interface LetterFilter {
  /** Undefined: all tenants. */
  readonly tenant?: string | undefined;
  readonly type?: string | undefined;
  readonly fingerprint?: string | undefined;
  readonly reason?: DeadLetterReason | undefined;
  readonly workerVersion?: string | undefined;
  readonly state?: LetterState | undefined;
  /** By the time of the last death, ms since 1970; from inclusive, to exclusive. */
  readonly deadFrom?: number | undefined;
  readonly deadTo?: number | undefined;
}

/** What a replay must know of a task that the log may have forgotten. */
export interface LetterMemory {
  readonly state: LetterState;
  readonly facts: Facts | null;
}

export const letterView = (row: LetterRow): LetterView => ({
  id: row.id,
  tenant: row.tenant,
  type: row.type,
  state: row.state,
  reason: row.reason,
  fingerprint: row.fingerprint,
  error: row.error,
  worker: row.worker,
  workerVersion: row.worker_version,
  priority: row.priority,
  attempt: row.attempt,
  round: row.round,
  firstFailedAt: row.first_failed_at?.toISOString() ?? null,
  firstDeadAt: row.first_dead_at.toISOString(),
  deadAt: row.dead_at.toISOString(),
  settledAt: row.settled_at?.toISOString() ?? null,
  settledBy: row.settled_by,
  note: row.note,
  seq: Number(row.seq),
});

export interface GroupRow {
  readonly type: string;
  readonly fingerprint: string;
  readonly error_name: string;
  readonly shape: string;
  readonly open: string;
  readonly replayed: string;
  readonly discarded: string;
  readonly deaths: string;
  readonly first_seen_at: Date;
  readonly last_seen_at: Date;
  readonly last_seq: string;
  readonly tenants: readonly { readonly tenant: string; readonly open: number }[];
  readonly sample_id: string;
  readonly sample_tenant: string;
  readonly sample_message: string;
}

export const groupView = (row: GroupRow): LetterGroupView => ({
  type: row.type,
  fingerprint: row.fingerprint,
  errorName: row.error_name,
  shape: row.shape,
  open: Number(row.open),
  replayed: Number(row.replayed),
  discarded: Number(row.discarded),
  deaths: Number(row.deaths),
  firstSeenAt: row.first_seen_at.toISOString(),
  lastSeenAt: row.last_seen_at.toISOString(),
  tenants: row.tenants,
  sample: { id: row.sample_id, tenant: row.sample_tenant, message: row.sample_message },
});

/** Without a tenant, an id that several tenants use gives the letter that is newest. */
export const letterById = (id: string, tenant: string | undefined): Statement => ({
  name: 'dead-letter-by-id',
  text: `select * from dead_letters where id = $1 and ($2::text is null or tenant = $2) order by seq desc limit 1`,
  values: [id, tenant ?? null],
});

/** `newest`: before a sequence, newest first; `oldest`: after one, oldest first, up to a last one. */
export type LetterPage =
  | { readonly order: 'newest'; readonly before: number | undefined; readonly limit: number }
  | { readonly order: 'oldest'; readonly after: number; readonly upTo: number; readonly limit: number };

export function letterList(filter: LetterFilter, page: LetterPage): Statement {
  const wanted = conditionsOf(filter);
  if (page.order === 'newest') wanted.require((p) => `seq < ${p}`, page.before);
  else {
    wanted.require((p) => `seq > ${p}`, page.after);
    wanted.require((p) => `seq <= ${p}`, page.upTo);
  }
  const limit = wanted.parameter(page.limit);
  return {
    text: `select * from dead_letters ${whereText(wanted.texts)}
      order by seq ${page.order === 'newest' ? 'desc' : ''} limit ${limit}`,
    values: wanted.values,
  };
}

/** How many letters a filter finds, up to a bound: a dry run is no reason to read a whole table. */
export function letterCount(filter: LetterFilter, most: number): Statement {
  const wanted = conditionsOf(filter);
  const limit = wanted.parameter(most);
  return {
    text: `select count(*) as count from (select 1 from dead_letters ${whereText(wanted.texts)} limit ${limit}) found`,
    values: wanted.values,
  };
}

/** Over the tenants of the filter. `open`: only groups with letters that wait for somebody. */
export function groupList(
  filter: Pick<LetterFilter, 'tenant' | 'type' | 'fingerprint'> & { readonly open: boolean },
  page: { readonly before: number | undefined; readonly limit: number },
): Statement {
  const wanted = conditionsOf({ ...filter });
  const before = wanted.parameter(page.before ?? null);
  const limit = wanted.parameter(page.limit);
  return {
    text: `select type, fingerprint,
        (array_agg(error_name order by last_seq desc))[1] as error_name,
        (array_agg(shape order by last_seq desc))[1] as shape,
        sum(open) as open, sum(replayed) as replayed, sum(discarded) as discarded, sum(deaths) as deaths,
        min(first_seen_at) as first_seen_at, max(last_seen_at) as last_seen_at, max(last_seq) as last_seq,
        json_agg(json_build_object('tenant', tenant, 'open', open) order by open desc, tenant) as tenants,
        (array_agg(sample_id order by last_seq desc))[1] as sample_id,
        (array_agg(tenant order by last_seq desc))[1] as sample_tenant,
        (array_agg(sample_message order by last_seq desc))[1] as sample_message
      from dead_letter_groups ${whereText(wanted.texts)}
      group by type, fingerprint
      having (${before}::bigint is null or max(last_seq) < ${before}) ${filter.open ? 'and sum(open) > 0' : ''}
      order by max(last_seq) desc limit ${limit}`,
    values: wanted.values,
  };
}

function conditionsOf(filter: LetterFilter): Conditions {
  const wanted = new Conditions();
  wanted.require((p) => `tenant = ${p}`, filter.tenant);
  wanted.require((p) => `type = ${p}`, filter.type);
  wanted.require((p) => `fingerprint = ${p}`, filter.fingerprint);
  wanted.require((p) => `reason = ${p}`, filter.reason);
  wanted.require((p) => `worker_version = ${p}`, filter.workerVersion);
  wanted.require((p) => `state = ${p}`, filter.state);
  wanted.require((p) => `dead_at >= to_timestamp(${p}::bigint / 1000.0)`, filter.deadFrom);
  wanted.require((p) => `dead_at < to_timestamp(${p}::bigint / 1000.0)`, filter.deadTo);
  return wanted;
}
