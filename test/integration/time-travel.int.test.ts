import { afterAll, beforeAll, expect, test } from 'vitest';
import { apply as countChanges } from '../../projections/queues/apply.ts';
import type { Recorded } from '../../src/domain/events.ts';
import { fold } from '../../src/domain/task.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { createQuery } from '../../src/query/postgres-query.ts';
import type { Query } from '../../src/query/query.ts';
import { randomLives } from '../support/random-lives.ts';
import {
  type LogGround,
  type ModelDatabase,
  openLogGround,
  openModelDatabase,
} from '../support/read-models.ts';
import { testNamespace } from '../support/servers.ts';

const events = randomLives({ seed: 31, tasks: 20, events: 1_000 });
let ground: LogGround;
let database: ModelDatabase;
let query: Query;
let between: number;

beforeAll(async () => {
  database = await openModelDatabase(import.meta.url);
  ground = await openLogGround(testNamespace(import.meta.url));
  const projector = ground.projector(database.pool);
  await projector.start();
  await projector.whenCaughtUp(await ground.append(events.slice(0, 437)));
  between = Date.now() + 2;
  while (Date.now() <= between + 2) await projector.whenCaughtUp(1);
  await projector.whenCaughtUp(await ground.append(events.slice(437)));
  query = createQuery({ pool: database.pool, nc: ground.nc, names: ground.names, logger: silentLogger });
});
afterAll(async () => {
  await ground.stop();
  await database.close();
});

/** The counters that the events up to a sequence leave. */
function countsAfter(seq: number): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { tenant, type, priority, status, delta } of countChanges(events.slice(0, seq)))
    if (delta > 0) counts[`${tenant} ${type} ${priority} ${status}`] = delta;
  return counts;
}

async function countsAt(point: Parameters<Query['queuesAt']>[1]) {
  const { position, value } = await query.queuesAt({}, point);
  const counts = Object.fromEntries(
    value.flatMap(({ tenant, type, priority, counts: of }) =>
      Object.entries(of).map(([status, count]) => [`${tenant} ${type} ${priority} ${status}`, count]),
    ),
  );
  return { position, counts };
}

test.each([1, 250, 437, 999, 1_000])(
  'counters as of sequence %i are those that its events leave',
  async (seq) => {
    expect(await countsAt({ seq })).toEqual({ position: seq, counts: countsAfter(seq) });
  },
);

test('counters as of an instant are those of the last event stored by then', async () => {
  expect(await countsAt({ at: between })).toEqual({ position: 437, counts: countsAfter(437) });
});

test('a task as of a sequence is what the domain folds from its events up to then', async () => {
  const lives = new Map<string, Recorded[]>();
  for (const recorded of events.slice(0, 437)) {
    const { taskId } = recorded.event;
    lives.set(taskId, [...(lives.get(taskId) ?? []), recorded]);
  }
  for (const [id, life] of lives) {
    const state = fold(life);
    const { value } = await query.taskAt(undefined, id, { seq: 437 });
    expect(value).toMatchObject({
      id,
      status: state?.status,
      attempt: state?.attempt,
      round: state?.round,
      seq: state?.seq,
      cancelRequested: state?.cancelRequested,
      payload: state?.payload ?? null,
    });
  }
  const late = events.slice(437).find(({ event }) => event.from === null)?.event.taskId ?? '';
  expect((await query.taskAt(undefined, late, { seq: 437 })).value).toBeUndefined();
});

test('before the first event of the log there was nothing', async () => {
  const [first] = events;
  for (const point of [{ at: 1_000 }, { seq: 0 }]) {
    expect(await countsAt(point)).toEqual({ position: 0, counts: {} });
    expect(await query.taskAt(undefined, first?.event.taskId ?? '', point)).toEqual({
      position: 0,
      value: undefined,
    });
  }
});

test('once events were removed, what was before the first that is kept is not known', async () => {
  await database.pool.query('delete from audit where seq <= 10');
  for (const point of [{ at: 1_000 }, { seq: 10 }])
    await expect(query.queuesAt({}, point)).rejects.toMatchObject({ code: 'point_not_kept' });
  expect((await countsAt({ seq: 11 })).counts).toEqual(countsAfter(11));
});
