import { randomUUID } from 'node:crypto';
import type { Command, CommandOf } from '../../../src/domain/commands.ts';
import { decide } from '../../../src/domain/decide.ts';
import type { Recorded, TaskEvent } from '../../../src/domain/events.ts';
import type { TaskState } from '../../../src/domain/task.ts';
import { execute } from '../../../src/log/handle.ts';
import type { OpenedLog } from '../../../src/log/open.ts';
import { createLogReader } from '../../../src/log/reader.ts';
import { silentLogger } from '../../../src/observe/log.ts';
import type { Ground } from './world.ts';

export const TENANT = 'acme';
const TYPE = 'transcode';
/** The worker that claims in these tests: both racers act in its name, so that only the log can tell them apart. */
const WORKER = 'worker-1';

type Step = Command['kind'];
/** What a writer does: a command, or a failure that no retry can mend. */
export type Move = Step | 'fail_for_good';

export const MOVES: readonly Move[] = [
  ...(['ingest', 'reject', 'queue', 'requeue', 'claim', 'start', 'complete', 'fail', 'lose'] as const),
  ...(['fail_for_good', 'dead_letter', 'request_cancel', 'cancel', 'replay', 'discard', 'carry'] as const),
];

/** A command that is legal in every state where its kind is. */
function command(kind: Step, taskId: string, state: TaskState | undefined): Command {
  const meta = {
    eventId: randomUUID(),
    at: Date.now(),
    actor: { kind: 'worker', id: WORKER } as const,
  };
  const attempt = Math.max(1, state?.attempt ?? 0);
  switch (kind) {
    case 'ingest':
      return { ...meta, kind, taskId, tenant: TENANT, type: TYPE, payload: { n: 1 }, priority: 2 };
    case 'reject':
      return { ...meta, kind, taskId, tenant: TENANT, type: TYPE, reasons: [{ code: 'x', message: 'no' }] };
    case 'queue':
      return { ...meta, kind, inlinePayload: true };
    case 'start':
    case 'complete':
      return { ...meta, kind, attempt };
    case 'fail':
      return { ...meta, kind, attempt, error: { name: 'Error', message: 'broken' }, dice: 0.5 };
    case 'lose':
      return { ...meta, kind, attempt, reason: 'lease_expired', dice: 0.5 };
    case 'discard':
      return { ...meta, kind, reason: 'useless' };
    case 'debounce':
      return {
        ...meta,
        kind,
        payload: { n: 2 },
        priority: 2,
        submittedAt: meta.at,
        windowMs: 1,
        once: false,
      };
    case 'requeue':
    case 'claim':
    case 'dead_letter':
    case 'request_cancel':
    case 'cancel':
    case 'replay':
    case 'reschedule':
    case 'carry':
      return { ...meta, kind };
    default:
      return kind satisfies never;
  }
}

/** The command that a writer sends for a move, whether or not it is legal in the state. */
export const commandOf = (move: Move, taskId: string, state: TaskState | undefined): Command =>
  move === 'fail_for_good'
    ? { ...(command('fail', taskId, state) as CommandOf<'fail'>), final: 'not_retryable' }
    : command(move, taskId, state);

/** The event that a move gives, which must be legal. */
export function eventOf(move: Move, taskId: string, state: TaskState | undefined): TaskEvent {
  const decided = decide(state, commandOf(move, taskId, state));
  if (!decided.ok) throw decided.error;
  return decided.value;
}

/** Takes a task through the moves; answers its state. */
export async function walk(
  log: OpenedLog,
  taskId: string,
  moves: readonly Move[],
): Promise<TaskState | undefined> {
  let state: TaskState | undefined;
  for (const move of moves) {
    const done = await execute(log, { tenant: TENANT, taskId, known: state ?? 'none' }, (current) =>
      commandOf(move, taskId, current),
    );
    if (!done.ok) throw done.error;
    state = done.value.state;
  }
  return state;
}

export const newIds = (count: number): string[] => Array.from({ length: count }, () => randomUUID());

/** Every event of a stream so far, as a reader gives them. */
export async function readAll(
  ground: Ground,
  { stream = 'tasks', count }: { stream?: 'tasks' | 'history'; count: number },
): Promise<Recorded[]> {
  const events: Recorded[] = [];
  let enough = (): void => {};
  const complete = new Promise<void>((resolve) => {
    enough = resolve;
  });
  const reader = createLogReader(
    { nc: await ground.connect(), names: ground.names, logger: silentLogger },
    {
      fromSeq: 1,
      maxBatch: 1_000,
      gatherMs: 0,
      stream,
      onBatch: (batch) => {
        events.push(...batch.events);
        if (events.length >= count) enough();
      },
    },
  );
  await reader.start();
  if (count > 0) await complete;
  await reader.stop();
  return events;
}

export function byTask(events: readonly Recorded[]): Map<string, Recorded[]> {
  const tasks = new Map<string, Recorded[]>();
  for (const recorded of events) {
    const task = tasks.get(recorded.event.taskId);
    if (task === undefined) tasks.set(recorded.event.taskId, [recorded]);
    else task.push(recorded);
  }
  return tasks;
}
