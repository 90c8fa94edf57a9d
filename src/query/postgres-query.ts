import type { NatsConnection } from '@nats-io/transport-node';
import type pg from 'pg';
import type { LetterRow } from '../../projections/dead_letters/row.ts';
import { isTaskId } from '../domain/names.ts';
import type { Logger } from '../observe/log.ts';
import { Patience } from '../platform/patience.ts';
import type { Service } from '../platform/service.ts';
import { AsOf } from './as-of.ts';
import { type CursorKind, cursorAt, seqOfCursor } from './cursor.ts';
import { Database } from './database.ts';
import {
  type GroupRow,
  groupList,
  groupView,
  letterById,
  letterCount,
  letterList,
  letterView,
} from './dead-letters.ts';
import type { Answer, Paged, Query } from './query.ts';
import { type ReadModel, Reflected } from './reflected.ts';
import { type CountRow, type EventRow, eventView, queueViews, type TaskRow, taskView } from './rows.ts';
import { eventsOfTask, queueCounts, taskById, taskCount, taskList } from './sql.ts';
import { Staleness } from './staleness.ts';

export interface QueryParts {
  readonly pool: pg.Pool;
  readonly nc: NatsConnection;
  readonly names: { projectionPosition(projection: string): string };
  /** The end of the log. With it, a query that is refused says how far the read models are behind. */
  readonly lastSeq?: () => Promise<number>;
  /** As the setting of that name. */
  readonly lookEveryMs?: number;
  readonly logger: Logger;
}

/** Questions of read models, and others to the same Postgres. */
export interface PostgresQuery extends Query, Service {
  /** Behind the same breaker. Throws `read_model_unavailable`. */
  readonly postgres: {
    query<Row extends object>(text: string, values: unknown[]): Promise<{ readonly rows: Row[] }>;
  };
}

/** Answers from the read models. Starts without Postgres, and answers as soon as it is there. */
export function createQuery({ pool, nc, names, lastSeq, lookEveryMs, logger }: QueryParts): PostgresQuery {
  const staleness = lastSeq === undefined ? undefined : new Staleness(lastSeq);
  const database = new Database({
    pool,
    logger: logger.child({ part: 'query' }),
    lookEveryMs,
    lag: async () => staleness?.lag(),
  });
  const asOf = new AsOf(database);
  const reflected = new Reflected({
    nc,
    subjects: names,
    database,
    onMove: (position) => staleness?.moved(position),
  });
  const answer = answersFrom(reflected);
  return {
    name: 'query',
    start: (patience = new Patience()) => patience.unlessStopped(reflected.start()),
    stop: async () => reflected.stop(),
    ...taskQueries(database, answer),
    ...letterQueries(database, answer),
    taskAt: (tenant, taskId, point) => asOf.task(tenant, taskId, point),
    queuesAt: (filter, point) => asOf.queues(filter, point),
    position: () => reflected.refresh(),
    postgres: {
      query: async <Row extends object>(text: string, values: unknown[]) => ({
        rows: await database.rows<Row>({ text, values }),
      }),
    },
    waitFor: (seq, timeoutMs) => reflected.waitFor(seq, timeoutMs),
  };
}

type AnswerOf = <T>(model: ReadModel, read: () => Promise<T>) => Promise<Answer<T>>;

/** The position is taken before the rows are read, so they reflect at least that. */
const answersFrom =
  (reflected: Reflected): AnswerOf =>
  async (model, read) => {
    const position = reflected.of(model);
    return { position, value: await read() };
  };

type TaskQueries = Pick<Query, 'task' | 'tasks' | 'countTasks' | 'taskEvents' | 'queues'>;

const taskQueries = (database: Database, answer: AnswerOf): TaskQueries => ({
  task: (tenant, taskId) =>
    answer('tasks', async () => {
      if (!isTaskId(taskId)) return undefined;
      const [row] = await database.rows<TaskRow>(taskById(taskId, tenant));
      return row === undefined ? undefined : taskView(row);
    }),
  async tasks(filter, { limit, cursor }) {
    const before = seqOfCursor('t', cursor);
    return answer('tasks', async () => {
      const rows = await database.rows<TaskRow>(taskList(filter, { before, limit: limit + 1 }));
      return page(rows, { limit, kind: 't', view: taskView, seqOf: (row) => Number(row.submitted_seq) });
    });
  },
  countTasks: (filter, atMost) =>
    answer('tasks', async () => {
      const [row] = await database.rows<{ count: string }>(taskCount(filter, atMost));
      return Number(row?.count ?? 0);
    }),
  async taskEvents(tenant, taskId, { limit, cursor }) {
    const after = seqOfCursor('e', cursor) ?? 0;
    return answer('audit', async () => {
      if (!isTaskId(taskId)) return { items: [], nextCursor: null };
      const statement = eventsOfTask({ id: taskId, tenant, after, limit: limit + 1 });
      const rows = await database.rows<EventRow>(statement);
      return page(rows, { limit, kind: 'e', view: eventView, seqOf: (row) => Number(row.seq) });
    });
  },
  queues: (filter) =>
    answer('queues', async () => queueViews(await database.rows<CountRow>(queueCounts(filter)))),
});

type LetterQueries = Pick<
  Query,
  | 'deadLetters'
  | 'deadLetter'
  | 'deadLetterGroups'
  | 'deadLettersBetween'
  | 'countDeadLetters'
  | 'deadLetterMemory'
>;

const letterQueries = (database: Database, answer: AnswerOf): LetterQueries => ({
  async deadLetters(filter, { limit, cursor }) {
    const before = seqOfCursor('d', cursor);
    return answer('dead_letters', async () => {
      const statement = letterList(filter, { order: 'newest', before, limit: limit + 1 });
      const rows = await database.rows<LetterRow>(statement);
      return page(rows, { limit, kind: 'd', view: letterView, seqOf: (row) => Number(row.seq) });
    });
  },
  deadLetter: (tenant, taskId) =>
    answer('dead_letters', async () => {
      if (!isTaskId(taskId)) return undefined;
      const [row] = await database.rows<LetterRow>(letterById(taskId, tenant));
      return row === undefined ? undefined : letterView(row);
    }),
  async deadLetterGroups(filter, { limit, cursor }) {
    const before = seqOfCursor('g', cursor);
    return answer('dead_letters', async () => {
      const rows = await database.rows<GroupRow>(groupList(filter, { before, limit: limit + 1 }));
      return page(rows, { limit, kind: 'g', view: groupView, seqOf: (row) => Number(row.last_seq) });
    });
  },
  deadLettersBetween: async (filter, stretch) =>
    (await database.rows<LetterRow>(letterList(filter, { order: 'oldest', ...stretch }))).map(letterView),
  async countDeadLetters(filter, most) {
    const [row] = await database.rows<{ count: string }>(letterCount(filter, most));
    return Number(row?.count ?? 0);
  },
  async deadLetterMemory(tenant, taskId) {
    const [row] = await database.rows<LetterRow>(letterById(taskId, tenant));
    if (row === undefined) return undefined;
    const { state, facts } = row;
    return { state, facts };
  },
});

/** One row more than the page holds was asked for: whether it came says whether there is a next page. */
function page<Row, View>(
  rows: readonly Row[],
  list: { limit: number; kind: CursorKind; view: (row: Row) => View; seqOf: (row: Row) => number },
): Paged<View> {
  const shown = rows.slice(0, list.limit);
  const last = shown.at(-1);
  return {
    items: shown.map(list.view),
    nextCursor: rows.length > list.limit && last !== undefined ? cursorAt(list.kind, list.seqOf(last)) : null,
  };
}
