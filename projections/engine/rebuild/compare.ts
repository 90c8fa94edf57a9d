import pg from 'pg';
import type { Table } from '../projection.ts';
import { type Difference, differences, type TableReport } from './job.ts';

const ident = pg.escapeIdentifier;
const SAMPLE = 10;

type Row = Readonly<Record<string, unknown>>;
interface Counts {
  readonly rows: string;
  readonly missing: string;
  readonly surplus: string;
  readonly changed: string;
  readonly from_seq: string | null;
}

/** The schemas of the two sides, and the first event of which TASKS told when it was stored. */
interface Sides {
  readonly live: string;
  readonly built: string;
  readonly firstSeq: number;
}

/** Compares a live table with one that was built, row by row, by hash. Both must be seen on one snapshot. */
export async function compareTables(client: pg.ClientBase, table: Table, sides: Sides): Promise<TableReport> {
  const { live } = sides;
  const columns = await columnsOf(client, table, live);
  const difference = differenceSql(table, columns, sides);
  const { rows } = await client.query<Counts>(
    `with difference as (${difference.text})
     select (select count(*) from ${qualified(live, table)}) as rows,
       count(*) filter (where live is null) as missing,
       count(*) filter (where built is null) as surplus,
       count(*) filter (where live <> built) as changed,
       min(first_seq) as from_seq
     from difference`,
  );
  const counts = rows[0];
  const found = {
    table: table.name,
    rows: Number(counts?.rows ?? 0),
    missing: Number(counts?.missing ?? 0),
    surplus: Number(counts?.surplus ?? 0),
    changed: Number(counts?.changed ?? 0),
    fromSeq: counts === undefined || counts.from_seq === null ? null : Number(counts.from_seq),
    sample: [],
  };
  // Comparing once more costs as much as the first time.
  if (differences(found) === 0) return found;
  const sample: Difference[] = [];
  const { rows: keys } = await client.query<Row>(
    `select ${difference.key.join(', ')} from (${difference.text}) d order by first_seq nulls last limit ${SAMPLE}`,
  );
  for (const key of keys) sample.push(await differenceAt(client, { ...sides, table, columns, key }));
  return { ...found, sample };
}

const qualified = (schema: string, { name }: Table): string => `${ident(schema)}.${ident(name)}`;

async function columnsOf(client: pg.ClientBase, table: Table, schema: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select attname::text as name from pg_attribute
     where attrelid = to_regclass($1) and attnum > 0 and not attisdropped order by attnum`,
    [qualified(schema, table)],
  );
  return rows.map(({ name }) => name);
}

/** What is compared of a column, as SQL. */
function comparedOf({ storedAt, seq }: Table, column: string, firstSeq: number): string {
  if (column !== storedAt || seq === undefined) return ident(column);
  return `case when ${ident(seq)} >= ${firstSeq} then ${ident(column)} end`;
}

/** One line for every row that differs: its key, the hashes, and the first event that either side reflects. */
function differenceSql(
  table: Table,
  columns: readonly string[],
  { live, built, firstSeq }: Sides,
): { text: string; key: readonly string[] } {
  const key = table.key.map((column) => ident(column));
  const seq = table.seq === undefined ? 'null::bigint' : ident(table.seq);
  const side = (schema: string): string => `
    select ${key.join(', ')}, ${seq} as row_seq,
      md5(row(${columns.map((column) => comparedOf(table, column, firstSeq)).join(', ')})::text) as hash
    from ${qualified(schema, table)} ${table.meaningful === undefined ? '' : `where ${table.meaningful}`}`;
  return {
    key,
    text: `select ${key.join(', ')}, l.hash as live, b.hash as built, least(l.row_seq, b.row_seq) as first_seq
      from (${side(live)}) l full join (${side(built)}) b using (${key.join(', ')})
      where l.hash is distinct from b.hash`,
  };
}

async function differenceAt(
  client: pg.ClientBase,
  at: Sides & { table: Table; columns: readonly string[]; key: Row },
): Promise<Difference> {
  const { table, columns, key, firstSeq } = at;
  const where = table.key.map((column, index) => `${ident(column)} = $${index + 1}`).join(' and ');
  const values = table.key.map((column) => key[column]);
  const read = async (schema: string): Promise<Row | null> => {
    const { rows } = await client.query<{ row: Row }>(
      `select to_json(t) as row from ${qualified(schema, table)} t where ${where}`,
      values,
    );
    return rows[0]?.row ?? null;
  };
  const live = await read(at.live);
  const rebuilt = await read(at.built);
  const differing =
    live === null || rebuilt === null
      ? []
      : columns.filter(
          (column) =>
            JSON.stringify(live[column]) !== JSON.stringify(rebuilt[column]) &&
            (column !== table.storedAt || Number(live[table.seq ?? '']) >= firstSeq),
        );
  return { key, columns: differing, live: only(live, differing), rebuilt: only(rebuilt, differing) };
}

/** The columns that differ, or the whole row when the other side has none. */
const only = (row: Row | null, columns: readonly string[]): Row | null =>
  row === null || columns.length === 0
    ? row
    : Object.fromEntries(columns.map((column) => [column, row[column]]));
