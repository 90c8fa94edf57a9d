import type pg from 'pg';
import type { TaskError } from '../../src/domain/events.ts';
import { arrayLiteral, jsonText, storableText } from '../engine/sql-text.ts';
import { digest, keyOf, type Outcome, type TaskNews } from './apply.ts';
import type { GroupChange } from './group.ts';
import type { Failure, Known, Letter } from './letter.ts';
import type { LetterRow } from './row.ts';

/**
 * Reads what is known of the tasks in the news, lets `digest` decide, and writes what has changed. The checkpoint has one
 * writer, so nothing changes in between. Failures are few: most batches cost nothing, others four statements.
 */
export async function write(client: pg.ClientBase, news: readonly TaskNews[]): Promise<void> {
  if (news.length === 0) return;
  const { rows } = await client.query<KnownRow>({
    ...LOAD,
    values: [arrayLiteral(news, ({ tenant }) => tenant), arrayLiteral(news, ({ id }) => id)],
  });
  const known = new Map(rows.map((row) => [keyOf(row.tenant, row.id), knownOf(row)]));
  const outcome = digest(news, (tenant, id) => known.get(keyOf(tenant, id)));
  await saveLetters(client, outcome.tasks);
  await saveFailures(client, outcome.tasks);
  await addToGroups(client, outcome.groups);
}

const LOAD = {
  name: 'dead-letters-load',
  text: `
    select wanted.tenant, wanted.id,
      l.type, l.state, l.reason, l.fingerprint, l.error, l.worker, l.worker_version, l.priority, l.attempt, l.round,
      l.first_failed_at, l.first_dead_at, l.dead_at, l.seq, l.settled_at, l.settled_by, l.note, l.facts,
      f.error as failure, f.worker as failed_worker, f.worker_version as failed_version, f.round as failed_round,
      f.first_failed_at as failing_since
    from unnest($1::text[], $2::uuid[]) as wanted (tenant, id)
    left join dead_letters l using (tenant, id)
    left join dead_letter_failures f using (tenant, id)`,
};

interface KnownRow extends Omit<LetterRow, 'type'> {
  /** Null: it has failed, and has not died. */
  readonly type: string | null;
  readonly failure: TaskError | null;
  readonly failed_worker: string;
  readonly failed_version: string | null;
  readonly failed_round: number;
  readonly failing_since: Date;
}

const knownOf = (row: KnownRow): Known => ({
  failure: row.failure === null ? null : failureOf(row, row.failure),
  letter: row.type === null ? null : letterOf(row, row.type),
});

const failureOf = (row: KnownRow, error: TaskError): Failure => ({
  error,
  worker: row.failed_worker,
  workerVersion: row.failed_version,
  round: row.failed_round,
  firstFailedAt: row.failing_since.getTime(),
});

const letterOf = (row: KnownRow, type: string): Letter => ({
  type,
  state: row.state,
  reason: row.reason,
  fingerprint: row.fingerprint,
  error: row.error,
  worker: row.worker,
  workerVersion: row.worker_version,
  priority: row.priority,
  attempt: row.attempt,
  round: row.round,
  firstFailedAt: row.first_failed_at?.getTime() ?? null,
  firstDeadAt: row.first_dead_at.getTime(),
  deadAt: row.dead_at.getTime(),
  seq: Number(row.seq),
  settledAt: row.settled_at?.getTime() ?? null,
  settledBy: row.settled_by,
  note: row.note,
  facts: row.facts,
});

const SAVE_LETTERS = {
  name: 'dead-letters-save',
  text: `
    insert into dead_letters (
      tenant, id, type, state, reason, fingerprint, error, worker, worker_version, priority, attempt, round,
      first_failed_at, first_dead_at, dead_at, seq, settled_at, settled_by, note, facts)
    select
      tenant, id, type, state, reason, fingerprint, error, worker, worker_version, priority, attempt, round,
      to_timestamp(first_failed_at / 1000.0), to_timestamp(first_dead_at / 1000.0), to_timestamp(dead_at / 1000.0),
      seq, to_timestamp(settled_at / 1000.0), settled_by, note, facts
    from unnest(
      $1::text[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::json[], $8::text[], $9::text[],
      $10::smallint[], $11::integer[], $12::integer[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[],
      $17::bigint[], $18::text[], $19::text[], $20::json[]
    ) as letter (
      tenant, id, type, state, reason, fingerprint, error, worker, worker_version, priority, attempt, round,
      first_failed_at, first_dead_at, dead_at, seq, settled_at, settled_by, note, facts)
    on conflict (tenant, id) do update set
      type = excluded.type,
      state = excluded.state,
      reason = excluded.reason,
      fingerprint = excluded.fingerprint,
      error = excluded.error,
      worker = excluded.worker,
      worker_version = excluded.worker_version,
      priority = excluded.priority,
      attempt = excluded.attempt,
      round = excluded.round,
      first_failed_at = excluded.first_failed_at,
      first_dead_at = excluded.first_dead_at,
      dead_at = excluded.dead_at,
      seq = excluded.seq,
      settled_at = excluded.settled_at,
      settled_by = excluded.settled_by,
      note = excluded.note,
      facts = excluded.facts`,
};

async function saveLetters(client: pg.ClientBase, tasks: Outcome['tasks']): Promise<void> {
  const changed = tasks.flatMap(({ tenant, id, before, after: { letter } }) =>
    letter === null || letter === before.letter ? [] : [{ tenant, id, letter }],
  );
  if (changed.length === 0) return;
  const column = (cell: (letter: Letter) => string | number | null) =>
    arrayLiteral(changed, ({ letter }) => cell(letter));
  const values = [
    arrayLiteral(changed, ({ tenant }) => tenant),
    arrayLiteral(changed, ({ id }) => id),
    column(({ type }) => type),
    column(({ state }) => state),
    column(({ reason }) => reason),
    column(({ fingerprint }) => fingerprint),
    column(({ error }) => (error === null ? null : jsonText(error))),
    column(({ worker }) => storable(worker)),
    column(({ workerVersion }) => storable(workerVersion)),
    column(({ priority }) => priority),
    column(({ attempt }) => attempt),
    column(({ round }) => round),
    column(({ firstFailedAt }) => firstFailedAt),
    column(({ firstDeadAt }) => firstDeadAt),
    column(({ deadAt }) => deadAt),
    column(({ seq }) => seq),
    column(({ settledAt }) => settledAt),
    column(({ settledBy }) => storable(settledBy)),
    column(({ note }) => storable(note)),
    column(({ facts }) => (facts === null ? null : jsonText(facts))),
  ];
  await client.query({ ...SAVE_LETTERS, values });
}

const SAVE_FAILURES = {
  name: 'dead-letter-failures-save',
  text: `
    insert into dead_letter_failures (tenant, id, error, worker, worker_version, round, first_failed_at)
    select tenant, id, error, worker, worker_version, round, to_timestamp(first_failed_at / 1000.0)
    from unnest($1::text[], $2::uuid[], $3::json[], $4::text[], $5::text[], $6::integer[], $7::bigint[])
      as failure (tenant, id, error, worker, worker_version, round, first_failed_at)
    on conflict (tenant, id) do update set
      error = excluded.error,
      worker = excluded.worker,
      worker_version = excluded.worker_version,
      round = excluded.round,
      first_failed_at = excluded.first_failed_at`,
};
const DROP_FAILURES = {
  name: 'dead-letter-failures-drop',
  text: `
    delete from dead_letter_failures f using unnest($1::text[], $2::uuid[]) as ended (tenant, id)
    where f.tenant = ended.tenant and f.id = ended.id`,
};

async function saveFailures(client: pg.ClientBase, tasks: Outcome['tasks']): Promise<void> {
  const failing = tasks.flatMap(({ tenant, id, before, after: { failure } }) =>
    failure === null || failure === before.failure ? [] : [{ tenant, id, failure }],
  );
  if (failing.length > 0) {
    const values = [
      arrayLiteral(failing, ({ tenant }) => tenant),
      arrayLiteral(failing, ({ id }) => id),
      arrayLiteral(failing, ({ failure }) => jsonText(failure.error)),
      arrayLiteral(failing, ({ failure }) => storableText(failure.worker)),
      arrayLiteral(failing, ({ failure }) => storable(failure.workerVersion)),
      arrayLiteral(failing, ({ failure }) => failure.round),
      arrayLiteral(failing, ({ failure }) => failure.firstFailedAt),
    ];
    await client.query({ ...SAVE_FAILURES, values });
  }
  const ended = tasks.filter(({ before, after }) => before.failure !== null && after.failure === null);
  if (ended.length === 0) return;
  const values = [arrayLiteral(ended, ({ tenant }) => tenant), arrayLiteral(ended, ({ id }) => id)];
  await client.query({ ...DROP_FAILURES, values });
}

/** Without a death in the batch there is nothing to see: the group exists, and keeps what it has. */
const ADD_TO_GROUPS = {
  name: 'dead-letter-groups-add',
  text: `
    insert into dead_letter_groups as g (
      tenant, type, fingerprint, open, replayed, discarded, deaths, first_seen_at, last_seen_at, last_seq, error_name,
      shape, sample_id, sample_message)
    select
      tenant, type, fingerprint, open, replayed, discarded, deaths, to_timestamp(first_at / 1000.0),
      to_timestamp(last_at / 1000.0), last_seq, error_name, shape, sample_id, sample_message
    from unnest(
      $1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], $8::bigint[],
      $9::bigint[], $10::bigint[], $11::text[], $12::text[], $13::uuid[], $14::text[]
    ) as change (
      tenant, type, fingerprint, open, replayed, discarded, deaths, first_at, last_at, last_seq, error_name, shape,
      sample_id, sample_message)
    on conflict (tenant, type, fingerprint) do update set
      open = g.open + excluded.open,
      replayed = g.replayed + excluded.replayed,
      discarded = g.discarded + excluded.discarded,
      deaths = g.deaths + excluded.deaths,
      first_seen_at = least(g.first_seen_at, excluded.first_seen_at),
      last_seen_at = greatest(g.last_seen_at, excluded.last_seen_at),
      last_seq = excluded.last_seq,
      error_name = excluded.error_name,
      shape = excluded.shape,
      sample_id = excluded.sample_id,
      sample_message = excluded.sample_message`,
};
const MOVE_IN_GROUPS = {
  name: 'dead-letter-groups-move',
  text: `
    update dead_letter_groups g set
      open = g.open + change.open,
      replayed = g.replayed + change.replayed,
      discarded = g.discarded + change.discarded
    from unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::bigint[], $6::bigint[])
      as change (tenant, type, fingerprint, open, replayed, discarded)
    where g.tenant = change.tenant and g.type = change.type and g.fingerprint = change.fingerprint`,
};

async function addToGroups(client: pg.ClientBase, groups: readonly GroupChange[]): Promise<void> {
  const counts = (changes: readonly GroupChange[]) => [
    arrayLiteral(changes, ({ tenant }) => tenant),
    arrayLiteral(changes, ({ type }) => type),
    arrayLiteral(changes, ({ fingerprint }) => fingerprint),
    arrayLiteral(changes, ({ open }) => open),
    arrayLiteral(changes, ({ replayed }) => replayed),
    arrayLiteral(changes, ({ discarded }) => discarded),
  ];
  const died = groups.flatMap((group) => (group.seen === null ? [] : [{ ...group, seen: group.seen }]));
  if (died.length > 0) {
    const values = [
      ...counts(died),
      arrayLiteral(died, ({ deaths }) => deaths),
      arrayLiteral(died, ({ seen }) => seen.firstAt),
      arrayLiteral(died, ({ seen }) => seen.lastAt),
      arrayLiteral(died, ({ seen }) => seen.lastSeq),
      arrayLiteral(died, ({ seen }) => storableText(seen.errorName)),
      arrayLiteral(died, ({ seen }) => storableText(seen.shape)),
      arrayLiteral(died, ({ seen }) => seen.sampleId),
      arrayLiteral(died, ({ seen }) => storableText(seen.sampleMessage)),
    ];
    await client.query({ ...ADD_TO_GROUPS, values });
  }
  const moved = groups.filter(({ seen }) => seen === null);
  if (moved.length > 0) await client.query({ ...MOVE_IN_GROUPS, values: counts(moved) });
}

const storable = (text: string | null): string | null => (text === null ? null : storableText(text));
