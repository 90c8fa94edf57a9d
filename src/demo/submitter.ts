import { mkdir, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { Api } from '../cli/api.ts';
import { Refusal } from '../cli/request.ts';
import { TaskledgerError } from '../domain/errors.ts';
import type { Status } from '../domain/events.ts';
import { TERMINAL } from '../domain/task.ts';
import type { Submission } from '../index.ts';
import type { Logger } from '../observe/log.ts';
import { type Demo, FIRST_ITEM } from './demo.ts';

/** No more items are made while this many of the demo's tasks are open: somebody has to do them first. */
const MOST_OPEN_TASKS = 60;
const REPORT_EVERY_MS = 10_000;

export interface Submitter {
  /** Makes and submits one item, unless enough is open already. Gives the number of tasks that were submitted. */
  runOnce(): Promise<number>;
  /** Items made so far by this process. */
  made(): number;
}

interface SubmitterParts {
  readonly demo: Demo;
  readonly mediaDir: string;
  readonly api: Api;
  readonly logger: Logger;
}

export function createSubmitter({ demo, mediaDir, api, logger }: SubmitterParts): Submitter {
  let made = 0;
  let reportedAt = 0;
  /** Tasks of an item that is on disk, while the API has not answered: they are sent again, by the same keys. */
  let unsubmitted: readonly Submission[] = [];

  async function runOnce(): Promise<number> {
    try {
      const counts = await countTasks(api, demo.types);
      report(counts);
      if (counts.open > MOST_OPEN_TASKS) return 0;
      if (unsubmitted.length === 0) unsubmitted = await makeNext();
      const { length } = unsubmitted;
      await submit(unsubmitted);
      unsubmitted = [];
      return length;
    } catch (error) {
      if (!isPassing(error)) throw error;
      logger.warn({ reason: error.message }, 'nothing submitted this time; trying again');
      return 0;
    }
  }

  async function makeNext(): Promise<readonly Submission[]> {
    const present = await readdir(mediaDir);
    const id = present.includes(FIRST_ITEM) ? newItemId(made) : FIRST_ITEM;
    await removeOldest(present);
    const dir = join(mediaDir, id);
    await mkdir(dir);
    const tasks = await demo.makeItem({ id, n: made, dir });
    made += 1;
    return tasks;
  }

  /** Names of items sort by time. */
  async function removeOldest(present: readonly string[]): Promise<void> {
    const spare = present.filter((id) => id !== FIRST_ITEM).sort();
    const excess = spare.slice(0, Math.max(0, spare.length - demo.keepItems + 1));
    for (const id of excess) await rm(join(mediaDir, id), { recursive: true, force: true });
  }

  async function submit(tasks: readonly Submission[]): Promise<void> {
    const { results } = await api.submitBatch(tasks);
    for (const result of results) {
      if (!result.ok) logger.warn({ code: result.error.code }, `a task was refused: ${result.error.message}`);
    }
  }

  function report(counts: TaskCounts): void {
    if (Date.now() - reportedAt < REPORT_EVERY_MS) return;
    reportedAt = Date.now();
    logger.info({ ...counts, items: made }, 'demo goes on');
  }

  return { runOnce, made: () => made };
}

interface TaskCounts {
  readonly completed: number;
  readonly dead: number;
  readonly open: number;
}

async function countTasks(api: Api, types: readonly string[]): Promise<TaskCounts> {
  const { queues } = await api.queues();
  const counts = { completed: 0, dead: 0, open: 0 };
  for (const queue of queues.filter(({ type }) => types.includes(type))) {
    for (const [status, count] of Object.entries(queue.counts) as [Status, number][]) {
      if (status === 'COMPLETED') counts.completed += count;
      else if (status === 'DEAD_LETTER') counts.dead += count;
      else if (!TERMINAL.has(status)) counts.open += count;
    }
  }
  return counts;
}

const newItemId = (n: number): string => `item-${Date.now().toString(36)}-${n.toString(36)}`;

/** Whether the same request may succeed later. */
const isPassing = (error: unknown): error is Refusal | TaskledgerError =>
  (error instanceof Refusal || error instanceof TaskledgerError) && error.retryable;
