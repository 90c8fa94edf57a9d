import type { Status } from '../../domain/events.ts';
import type { Priority } from '../../domain/names.ts';
import { type LiveTask, Mode, type Rarities, Spot } from '../live-task.ts';

/** Where a task stands as far as the log says; what a leader has under way is not in it. */
export type LoggedMode =
  | typeof Mode.waiting
  | typeof Mode.delayed
  | typeof Mode.doomed
  | typeof Mode.queued
  | typeof Mode.running;

/** All that a snapshot keeps of one task. */
export interface TaskRow {
  /** See id-bits.ts. */
  readonly id: readonly [number, number, number, number];
  readonly tenant: string;
  readonly type: string;
  readonly version: number;
  readonly mode: LoggedMode;
  readonly status: Status;
  readonly known: boolean;
  readonly cancelRequested: boolean;
  /** Whether it holds a slot although it is doomed. Who is queued or running holds one anyway. */
  readonly holds: boolean;
  /** Whether its ordering key is its own until it ends. */
  readonly started: boolean;
  /** Whether it waits in its lane, not behind a key. */
  readonly inLane: boolean;
  readonly priority: Priority;
  readonly attempt: number;
  readonly seq: number;
  readonly order: number;
  readonly submittedAt: number;
  readonly dueAt: number;
  readonly payloadSeq: number | undefined;
  readonly rare: Rarities | undefined;
}

export function rowOf(task: LiveTask): TaskRow {
  const { line, attempt, seq, order, submittedAt, dueAt, payloadSeq, rare } = task;
  return {
    id: [task.id0, task.id1, task.id2, task.id3],
    tenant: task.tenant,
    type: line.type,
    version: line.version,
    mode: loggedMode(task),
    status: task.status,
    known: task.known,
    cancelRequested: task.cancelRequested,
    holds: task.holds,
    started: task.keyed && task.share.gates.hasStarted(task),
    inLane: task.spot === Spot.lane,
    priority: task.priority,
    attempt,
    seq,
    order,
    submittedAt,
    dueAt,
    payloadSeq,
    rare,
  };
}

function loggedMode({ mode, status, rare, cancelRequested, dueAt }: LiveTask): LoggedMode {
  if (mode === Mode.doomed || mode === Mode.ending) return Mode.doomed;
  if (status === 'QUEUED') return Mode.queued;
  if (mode === Mode.running || status === 'CLAIMED' || status === 'PROCESSING') return Mode.running;
  const next = rare?.next;
  // One that was forgiven, or whose end could not be stored, comes up for its end again.
  if (cancelRequested || (next !== undefined && 'final' in next)) return Mode.doomed;
  const waits = mode === Mode.waiting || mode === Mode.queueing || dueAt === 0;
  return waits ? Mode.waiting : Mode.delayed;
}
