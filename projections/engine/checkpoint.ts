import type pg from 'pg';
import type { Progress } from './projection.ts';

export interface Checkpoint {
  readonly name: string;
  readonly seq: number;
  /** Identity of the log that `seq` belongs to. */
  readonly logId: string;
}

/** Another projector has moved a checkpoint that this one holds for its own. */
export class Superseded extends Error {
  override readonly name = 'Superseded';
}

const LOAD = {
  name: 'checkpoint-load',
  text: 'select name, seq, log_id from projection_checkpoint where name = any($1)',
};

export async function loadCheckpoints(
  client: pg.ClientBase,
  names: readonly string[],
): Promise<Checkpoint[]> {
  const { rows } = await client.query<{ name: string; seq: string; log_id: string }>({
    ...LOAD,
    values: [names],
  });
  return rows.map((row) => ({ name: row.name, seq: Number(row.seq), logId: row.log_id }));
}

const BEGIN = {
  name: 'checkpoint-begin',
  text: `insert into projection_checkpoint (name, seq, log_id)
    select name, 0, $2 from unnest($1::text[]) as n(name) order by name on conflict (name) do nothing`,
};

/** Makes the checkpoints that do not exist yet, at 0. */
export async function beginCheckpoints(
  client: pg.ClientBase,
  names: readonly string[],
  logId: string,
): Promise<void> {
  await client.query({ ...BEGIN, values: [names, logId] });
}

/** Compare-and-set of several checkpoints at once. It comes first in its transaction: who loses waits here and then writes nothing. */
const ADVANCE = {
  name: 'checkpoint-advance',
  text: `update projection_checkpoint as c set seq = $3, at = now()
    from unnest($1::text[], $2::bigint[]) as expected(name, seq)
    where c.name = expected.name and c.seq = expected.seq`,
};

/** Moves the checkpoints from where `progress` has them to `seq`, or throws Superseded. */
export async function advanceCheckpoints(
  client: pg.ClientBase,
  progress: readonly Progress[],
  seq: number,
): Promise<void> {
  const names = progress.map(({ projection }) => projection.name);
  const { rowCount } = await client.query({ ...ADVANCE, values: [names, progress.map((p) => p.seq), seq] });
  if (rowCount !== progress.length) throw new Superseded(`another projector moved ${names.join(' or ')}`);
}

const SET_ASIDE = {
  name: 'poison-set-aside',
  text: `insert into projection_poison (projection, seq, event, error) values ($1, $2, $3, $4)
    on conflict (projection, seq) do nothing`,
};

/** Keeps an event that a projection could not digest, inside the transaction that passes over it. */
export async function setAside(
  client: pg.ClientBase,
  poison: { projection: string; seq: number; event: string; error: string },
): Promise<void> {
  await client.query({ ...SET_ASIDE, values: [poison.projection, poison.seq, poison.event, poison.error] });
}
