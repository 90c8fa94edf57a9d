import type pg from 'pg';

const DAY_MS = 86_400_000;
/** Partitions made before their day comes, so that midnight is nothing special. */
const DAYS_AHEAD = 2;

/** A day in UTC, as the number of days since 1970. */
export type Day = number;
export const dayOf = (ms: number): Day => Math.floor(ms / DAY_MS);

/** The first day that is kept. */
export const firstDayKept = (now: number, auditDays: number): Day => dayOf(now) - auditDays + 1;

const isoDate = (day: Day): string => new Date(day * DAY_MS).toISOString().slice(0, 10);
export const partitionOf = (day: Day): string => `audit_${isoDate(day).replaceAll('-', '')}`;

/**
 * Makes a day's partition unless it is there. Attaching takes only a SHARE UPDATE EXCLUSIVE lock on `audit`, so readers
 * and writers go on. Safe to call from several processes at once.
 */
async function makePartition(client: pg.ClientBase, day: Day): Promise<void> {
  const name = partitionOf(day);
  await client.query(`
    do $$ begin
      perform pg_advisory_xact_lock(hashtext('audit partitions'));
      if to_regclass('${name}') is null then
        create table ${name} (like audit including defaults);
        alter table audit attach partition ${name}
          for values from ('${isoDate(day)}T00:00:00Z') to ('${isoDate(day + 1)}T00:00:00Z');
      end if;
    end $$`);
}

/** Drops the partitions of days that are not kept. Detaching concurrently does not hold up readers or writers. */
async function dropPartitionsBefore(client: pg.ClientBase, day: Day): Promise<void> {
  const { rows } = await client.query<{ name: string; pending: boolean }>(`
    select c.relname as name, i.inhdetachpending as pending
    from pg_inherits i join pg_class c on c.oid = i.inhrelid
    where i.inhparent = 'audit'::regclass order by 1`);
  const tooOld = partitionOf(day);
  for (const { name, pending } of rows) {
    if (!/^audit_\d{8}$/.test(name) || name >= tooOld) continue;
    await client.query(`alter table audit detach partition ${name} ${pending ? 'finalize' : 'concurrently'}`);
    await client.query(`drop table ${name}`);
  }
}

/** Remembers which partitions exist, so that a batch costs no question, and which days are over. */
export class Partitions {
  readonly #auditDays: number;
  readonly #known = new Set<Day>();
  #firstKept = Number.NEGATIVE_INFINITY;

  constructor(auditDays: number) {
    this.#auditDays = auditDays;
  }

  /** False for a day whose partition has been dropped, or would be. */
  keeps(day: Day): boolean {
    return day >= this.#firstKept;
  }

  async ensure(client: pg.ClientBase, days: Iterable<Day>): Promise<void> {
    for (const day of days) {
      if (this.#known.has(day) || !this.keeps(day)) continue;
      await makePartition(client, day);
      this.#known.add(day);
    }
  }

  async maintain(client: pg.ClientBase, now: number): Promise<void> {
    // Somebody may have removed one by hand: ask again.
    this.#known.clear();
    const today = dayOf(now);
    const ahead = Array.from({ length: DAYS_AHEAD + 1 }, (_, i) => today + i);
    this.#firstKept = firstDayKept(now, this.#auditDays);
    await this.ensure(client, ahead);
    await dropPartitionsBefore(client, this.#firstKept);
  }
}
