import type pg from 'pg';

/** A task that has not ended. `seq`: its first event known; `lastSeq`: its last one. */
export interface UnfinishedTask {
  readonly tenant: string;
  readonly taskId: string;
  readonly seq: number;
  readonly lastSeq: number;
}

interface Row {
  readonly tenant: string;
  readonly id: string;
  readonly first_seq: string;
  readonly seq: string;
}

/** In the words of the partial indexes, or the planner does not see that they fit. */
const UNFINISHED = `
  select tenant, id, abs(submitted_seq) as first_seq, seq from tasks
  where status in ('INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'FAILED', 'RETRY_CLAIMED', 'REPLAYED')`;
export const OLDEST = `${UNFINISHED} order by abs(submitted_seq) limit 1`;
export const QUIETEST = `${UNFINISHED} order by seq limit 1`;

/** The unfinished task that began first, and the one whose last event is oldest. One look into an index each. */
export async function unfinishedTasks(
  pool: pg.Pool,
): Promise<{ oldest: UnfinishedTask | null; quietest: UnfinishedTask | null }> {
  const first = async (text: string): Promise<UnfinishedTask | null> => {
    const row = (await pool.query<Row>(text)).rows[0];
    if (row === undefined) return null;
    const { tenant, id: taskId, first_seq: seq, seq: lastSeq } = row;
    return { tenant, taskId, seq: Number(seq), lastSeq: Number(lastSeq) };
  };
  return { oldest: await first(OLDEST), quietest: await first(QUIETEST) };
}
