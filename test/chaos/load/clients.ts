import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { randomOf } from '../../support/random-lives.ts';
import type { JoinedSubmission, Operation } from '../checker/evidence.ts';
import { joiner } from './joiner.ts';
import { drawTask, JOINED_AT_MOST, type LoadTask } from './wishes.ts';

/** What became of one request. `seq` is the first event's, or the one's that joined it to another task. */
export interface Told {
  readonly outcome: Operation['outcome'];
  readonly answer: string;
  readonly taskId?: string;
  readonly seq?: number;
}

export interface Wanted {
  readonly task: LoadTask;
  readonly taskId: string;
}

/** The ways in which clients reach the product. A rejection counts as an answer that never came. */
export interface Doors {
  /** Without an id for those that are joined with others. */
  submit(task: LoadTask, taskId?: string): Promise<Told>;
  /** Tasks of one tenant in one request, each with an answer of its own. */
  submitBatch(batch: readonly Wanted[]): Promise<readonly Told[]>;
  cancel(task: LoadTask, taskId: string): Promise<Told>;
}

export interface Clients {
  readonly operations: readonly Operation[];
  readonly joined: readonly JoinedSubmission[];
  /** Submits nothing new, and waits for the answers that are due. */
  stop(): Promise<void>;
}

/** A client that hears nothing asks again, with the same key. */
const TRIES = 4;
const AGAIN_AFTER_MS = 1_000;
/** Submitted a second time although the first was acknowledged. */
const REPEATED = 0.03;
const MAX_IN_FLIGHT = 400;
const BATCH = { least: 2, most: 5 };

/** Steady load, whatever becomes of it. Every request's outcome is recorded when it is known. */
export function startClients(options: {
  readonly seed: number;
  readonly tasksPerSecond: number;
  readonly doors: Doors;
  /** Of the workers that is being rolled out. */
  readonly release: () => number;
  readonly record: (operation: Operation | JoinedSubmission) => void;
}): Clients {
  const { doors } = options;
  const dice = randomOf(options.seed);
  const operations: Operation[] = [];
  const inFlight = new Set<Promise<void>>();
  const record = (operation: Operation): void => {
    operations.push(operation);
    options.record(operation);
  };
  const recordSubmit = ({ task: { tenant, type }, taskId }: Wanted, at: number, told: Told): void =>
    record({ ...told, op: 'submit', at, tenant, type, taskId });

  const submitOnce = async (wanted: Wanted): Promise<Told> => {
    const at = Date.now();
    const told = await heard(doors.submit(wanted.task, wanted.taskId));
    recordSubmit(wanted, at, told);
    return told;
  };
  const submitBatch = async (batch: readonly Wanted[]): Promise<readonly Told[]> => {
    const at = Date.now();
    const all = await doors.submitBatch(batch).catch((error: unknown) => batch.map(() => silence(error)));
    for (const [index, told] of all.entries()) {
      const wanted = batch[index];
      if (wanted !== undefined) recordSubmit(wanted, at, told);
    }
    return all;
  };

  /** From the answer to its first submission on. */
  const live = async (wanted: Wanted, first: Told, repeated: boolean): Promise<void> => {
    const { task, taskId } = wanted;
    let told = first;
    for (let tried = 1; told.outcome === 'unknown' && tried < TRIES; tried += 1) {
      await delay(AGAIN_AFTER_MS);
      told = await submitOnce(wanted);
    }
    if (repeated) await submitOnce(wanted);
    if (task.cancelAfterMs === undefined || told.outcome !== 'acknowledged') return;
    await delay(task.cancelAfterMs);
    const at = Date.now();
    const { outcome, answer } = await heard(doors.cancel(task, taskId));
    record({ op: 'cancel', at, tenant: task.tenant, taskId, outcome, answer });
  };
  const joined = joiner({ dice, submit: (task) => heard(doors.submit(task)), record: options.record });
  const drawOne = (): Wanted => ({ task: drawTask(dice, options.release()), taskId: randomUUID() });
  /** A batch takes the turns of its tasks, so that the load stays what it is. */
  let owed = 0;
  const next = async (): Promise<void> => {
    const wanted = drawOne();
    const repeated = dice() < REPEATED;
    if (wanted.task.join !== undefined) {
      const more = Math.floor(dice() * JOINED_AT_MOST);
      owed += more;
      return joined.submit(wanted.task, wanted.task.join, more);
    }
    if (wanted.task.via !== 'batch') return live(wanted, await submitOnce(wanted), repeated);
    const { tenant } = wanted.task;
    const more = BATCH.least - 1 + Math.floor(dice() * (BATCH.most - BATCH.least + 1));
    owed += more;
    const others = Array.from({ length: more }, drawOne);
    const batch = [
      wanted,
      // Those have ids, which a joined one must not.
      ...others.map(({ task: { join: _join, ...task }, taskId }) => ({
        task: { ...task, tenant, via: 'batch' as const },
        taskId,
      })),
    ];
    const told = await submitBatch(batch);
    await Promise.all(
      batch.map((each, index) => live(each, told[index] ?? silence('no result'), repeated && index === 0)),
    );
  };
  const timer = setInterval(() => {
    if (owed > 0) {
      owed -= 1;
      return;
    }
    if (inFlight.size >= MAX_IN_FLIGHT) return;
    const life = next().finally(() => inFlight.delete(life));
    inFlight.add(life);
  }, 1_000 / options.tasksPerSecond);
  return {
    operations,
    joined: joined.submissions,
    async stop() {
      clearInterval(timer);
      await Promise.all(inFlight);
    },
  };
}

const silence = (reason: unknown): Told => ({ outcome: 'unknown', answer: reasonOf(reason) });
const heard = (request: Promise<Told>): Promise<Told> => request.catch(silence);

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
