import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { randomOf } from '../../support/random-lives.ts';
import type { Operation } from '../checker/evidence.ts';
import { drawTask, type LoadTask } from './wishes.ts';

/** What became of one request. `seq` is the first event's. */
export interface Told {
  readonly outcome: Operation['outcome'];
  readonly answer: string;
  readonly seq?: number;
}

/** The ways in which clients reach the product. A rejection counts as an answer that never came. */
export interface Doors {
  submit(task: LoadTask, taskId: string): Promise<Told>;
  cancel(task: LoadTask, taskId: string): Promise<Told>;
}

export interface Clients {
  readonly operations: readonly Operation[];
  /** Submits nothing new, and waits for the answers that are due. */
  stop(): Promise<void>;
}

/** A client that hears nothing asks again, with the same key. */
const TRIES = 4;
const AGAIN_AFTER_MS = 1_000;
/** Submitted a second time although the first was acknowledged. */
const REPEATED = 0.03;
const MAX_IN_FLIGHT = 400;

/** Steady load, whatever becomes of it. Every request's outcome is recorded when it is known. */
export function startClients(options: {
  readonly seed: number;
  readonly tasksPerSecond: number;
  readonly doors: Doors;
  readonly record: (operation: Operation) => void;
}): Clients {
  const { doors } = options;
  const dice = randomOf(options.seed);
  const operations: Operation[] = [];
  const inFlight = new Set<Promise<void>>();
  const record = (operation: Operation): void => {
    operations.push(operation);
    options.record(operation);
  };

  const submitOnce = async (task: LoadTask, taskId: string): Promise<Told> => {
    const at = Date.now();
    const told = await heard(doors.submit(task, taskId));
    const { tenant, type } = task;
    record({ op: 'submit', at, tenant, type, taskId, ...told });
    return told;
  };
  const live = async (task: LoadTask, repeated: boolean): Promise<void> => {
    const taskId = randomUUID();
    let told = await submitOnce(task, taskId);
    for (let tried = 1; told.outcome === 'unknown' && tried < TRIES; tried += 1) {
      await delay(AGAIN_AFTER_MS);
      told = await submitOnce(task, taskId);
    }
    if (repeated) await submitOnce(task, taskId);
    if (task.cancelAfterMs === undefined || told.outcome !== 'acknowledged') return;
    await delay(task.cancelAfterMs);
    const at = Date.now();
    const { outcome, answer } = await heard(doors.cancel(task, taskId));
    record({ op: 'cancel', at, tenant: task.tenant, taskId, outcome, answer });
  };
  const timer = setInterval(() => {
    if (inFlight.size >= MAX_IN_FLIGHT) return;
    const life = live(drawTask(dice), dice() < REPEATED).finally(() => inFlight.delete(life));
    inFlight.add(life);
  }, 1_000 / options.tasksPerSecond);
  return {
    operations,
    async stop() {
      clearInterval(timer);
      await Promise.all(inFlight);
    },
  };
}

const heard = (request: Promise<Told>): Promise<Told> =>
  request.catch((error: unknown) => ({ outcome: 'unknown', answer: reasonOf(error) }));

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
