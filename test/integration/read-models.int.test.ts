import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { beginCheckpoints } from '../../projections/engine/checkpoint.ts';
import { applyBatch } from '../../projections/engine/transaction.ts';
import { projections } from '../../projections/projections.ts';
import type { Recorded, Status } from '../../src/domain/events.ts';
import { evolve, type TaskState } from '../../src/domain/task.ts';
import type { TaskRow } from '../../src/query/rows.ts';
import { randomLives, randomOf } from '../support/random-lives.ts';
import { type ModelDatabase, openModelDatabase } from '../support/read-models.ts';

/** What the SQL of the read models does with events, without a log. */
const events = randomLives({ seed: 11, tasks: 60, events: 1_500 });
const databases: ModelDatabase[] = [];
afterAll(async () => {
  for (const database of databases) await database.close();
});

async function setup(): Promise<ModelDatabase> {
  const database = await openModelDatabase(import.meta.url);
  databases.push(database);
  return database;
}

/** Applies the batches one after the other, each in its transaction, to all read models. */
async function applyAll({ pool }: ModelDatabase, batches: Iterable<readonly Recorded[]>): Promise<void> {
  const progress = projections({ auditDays: 3_650 }).map((projection) => ({ projection, seq: 0 }));
  const names = progress.map(({ projection }) => projection.name);
  const client = await pool.connect();
  try {
    await beginCheckpoints(client, names, 'a log');
    for (const batch of batches) {
      const lastSeq = batch.at(-1)?.seq ?? 0;
      await applyBatch(client, progress, { events: batch, unreadable: [], lastSeq });
      for (const each of progress) each.seq = lastSeq;
    }
  } finally {
    client.release();
  }
}

/** Pieces of 1 to `most` events. */
function* inPieces(most: number): Generator<readonly Recorded[]> {
  const dice = randomOf(most);
  for (let from = 0, size = 0; from < events.length; from += size) {
    size = 1 + Math.floor(dice() * most);
    yield events.slice(from, from + size);
  }
}

describe('the read models', () => {
  let whole: ModelDatabase;
  beforeAll(async () => {
    whole = await setup();
    await applyAll(whole, [events]);
  });

  test.each([5, 100])(
    'are the same whether events come in pieces of up to %i or all at once',
    async (most) => {
      const pieces = await setup();
      await applyAll(pieces, inPieces(most));
      expect(await pieces.hashes()).toEqual(await whole.hashes());
    },
  );

  test('show every task as the domain folds it', async () => {
    const states = new Map<string, TaskState>();
    for (const recorded of events) {
      const { taskId, at } = recorded.event;
      // HISTORY does not keep when TASKS stored an event, so rows tell time by the event alone.
      states.set(taskId, evolve(states.get(taskId), { ...recorded, storedAt: at }));
    }
    const { rows } = await whole.pool.query<TaskRow>('select * from tasks');
    expect(rows).toHaveLength(states.size);
    for (const row of rows) {
      const state = states.get(row.id);
      expect({ id: row.id, ...rowFacts(row) }).toEqual({ id: row.id, ...stateFacts(state) });
    }
  });

  test('count the tasks of each status', async () => {
    const { rows } = await whole.pool.query<{ status: Status; counted: string; kept: string }>(`
      select status, counted, kept from (select status, count(*) as counted from tasks group by status) t
      full join (select status, sum(count) as kept from queues group by status having sum(count) <> 0) q
      using (status)`);
    expect(rows.length).toBeGreaterThan(5);
    for (const { counted, kept, status } of rows) expect({ status, kept }).toEqual({ status, kept: counted });
  });

  test('record every event, in the partition of its day', async () => {
    const { rows } = await whole.pool.query(
      'select count(*)::int as n, tableoid::regclass::text as part from audit group by 2',
    );
    expect(rows).toEqual([{ n: events.length, part: 'audit_20260101' }]);
  });

  test('refuse to be given a batch twice', async () => {
    const before = await whole.hashes();
    await expect(applyAll(whole, [events.slice(0, 10)])).rejects.toThrow('another projector moved');
    expect(await whole.hashes()).toEqual(before);
  });
});

function stateFacts(state: TaskState | undefined) {
  return {
    status: state?.status,
    seq: state?.seq,
    round: state?.round,
    attempt: state?.attempt,
    priority: state?.priority,
    dueAt: state?.dueAt,
    deadlineAt: state?.facts.deadlineAt,
    submittedAt: state?.facts.submittedAt,
    cancelRequested: state?.cancelRequested,
    payload: state?.payload ?? null,
    holder: state?.holder,
  };
}

function rowFacts(row: TaskRow) {
  const running = row.status === 'CLAIMED' || row.status === 'PROCESSING';
  return {
    status: row.status,
    seq: Number(row.seq),
    round: row.round,
    attempt: row.attempt,
    priority: row.priority,
    dueAt: row.due_at?.getTime(),
    deadlineAt: row.deadline_at?.getTime(),
    submittedAt: row.submitted_at.getTime(),
    cancelRequested: row.cancel_requested,
    payload: row.payload,
    holder: running ? row.worker : undefined,
  };
}
