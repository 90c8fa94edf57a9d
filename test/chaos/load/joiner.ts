import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { JoinedSubmission } from '../checker/evidence.ts';
import type { Told } from './clients.ts';
import { drawAgain, JOINED_WITHIN_MS, type JoinKey, type LoadTask } from './wishes.ts';

/** A client that submits a key of `throttle` or `debounce` a few times in a short time, by several doors, and notes what it is told. */
export function joiner(options: {
  readonly dice: () => number;
  readonly submit: (task: LoadTask) => Promise<Told>;
  readonly record: (submission: JoinedSubmission) => void;
}) {
  const { dice, submit, record } = options;
  const submissions: JoinedSubmission[] = [];

  const submitOne = async (task: LoadTask, { by, key, windowMs }: JoinKey): Promise<void> => {
    const mark = randomUUID();
    const { tenant, type, payload } = task;
    const at = Date.now();
    const told = await submit({ ...task, payload: { ...payload, mark } });
    const submission = { ...told, by, key, windowMs, mark, tenant, type, at, answeredAt: Date.now() };
    submissions.push(submission);
    record(submission);
  };

  return {
    submissions,
    /** Resolves when all are answered. `more`: how many come on top of the first. */
    async submit(task: LoadTask, join: JoinKey, more: number): Promise<void> {
      const others = Array.from({ length: more }, () => ({
        task: drawAgain(dice, task),
        afterMs: Math.round(dice() * JOINED_WITHIN_MS),
      }));
      await Promise.all([
        submitOne(task, join),
        ...others.map(async (other) => {
          await delay(other.afterMs);
          await submitOne(other.task, join);
        }),
      ]);
    },
  };
}
