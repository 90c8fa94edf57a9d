import { LiveTask, Mode, Spot } from '../live-task.ts';
import type { Placement } from '../placement.ts';
import { SHARDS, shardOf, type TaskIndex } from '../task-index.ts';
import type { RestoredBlock } from './format.ts';
import type { TaskRow } from './task-row.ts';

/**
 * The position that each shard of restored tasks has seen. A task is never shown an event twice: that would not only
 * count it twice, it would take the task back to where it was.
 */
export class SeenByShard {
  readonly #positions = new Float64Array(SHARDS);
  /** No shard has seen more. */
  #upTo = 0;

  note(shards: readonly number[], position: number): void {
    for (const shard of shards) this.#positions[shard] = position;
    this.#upTo = Math.max(this.#upTo, position);
  }

  /** Whether the log has come to what no shard has seen. */
  isPast(seq: number): boolean {
    return seq > this.#upTo;
  }

  has(taskId: string, seq: number): boolean {
    return seq <= (this.#positions[shardOf(taskId)] ?? 0);
  }
}

/** Puts the tasks of a snapshot where replaying the log would have put them. Into an empty memory, after all settings. */
export function restoreTasks(
  blocks: readonly RestoredBlock[],
  { tasks, place }: { readonly tasks: TaskIndex; readonly place: Placement },
): SeenByShard {
  const seen = new SeenByShard();
  const standing: { readonly task: LiveTask; readonly mode: Mode }[] = [];
  const doomed: LiveTask[] = [];
  const lanes: LiveTask[] = [];
  const behind: LiveTask[] = [];
  for (const { position, shards, rows } of blocks) {
    seen.note(shards, position);
    for (const row of rows()) {
      const task = taskOf(row, place);
      tasks.add(task);
      if (task.keyed) {
        task.share.gates.enrol(task);
        if (row.started) task.share.gates.restoreStarted(task);
      }
      if (row.holds && row.mode === Mode.doomed) place.ledger.hold(task);
      if (row.mode === Mode.doomed) doomed.push(task);
      else if (row.mode !== Mode.waiting) standing.push({ task, mode: row.mode });
      else (row.inLane ? lanes : behind).push(task);
    }
  }
  for (const { task, mode } of standing) place.restore(task, mode);
  for (const task of inOrder(doomed)) place.restore(task, Mode.doomed);
  for (const task of inOrder(lanes)) {
    task.spot = Spot.lane;
    place.restore(task, Mode.waiting);
  }
  // Whom a key holds back can be told when all of the key are known, and who has its slots.
  for (const task of inOrder(behind)) place.restore(task, Mode.waiting);
  return seen;
}

/**
 * By `order`: lanes take what comes in order at no cost. The keys are sorted apart from the tasks, order and index in one
 * number: to compare a million objects takes twenty times as long.
 */
function inOrder(tasks: readonly LiveTask[]): LiveTask[] {
  const first = tasks.reduce((least, { order }) => Math.min(least, order), Number.POSITIVE_INFINITY);
  const last = tasks.reduce((most, { order }) => Math.max(most, order), 0);
  if ((last - first + 1) * tasks.length > Number.MAX_SAFE_INTEGER)
    return tasks.toSorted((one, other) => one.order - other.order);
  const keys = new Float64Array(tasks.length);
  for (const [index, { order }] of tasks.entries()) keys[index] = (order - first) * tasks.length + index;
  return Array.from(keys.sort(), (key) => tasks[key % tasks.length] as LiveTask);
}

function taskOf(row: TaskRow, place: Placement): LiveTask {
  const task = new LiveTask({
    id: row.id,
    share: place.ledger.share(row.tenant, row.type),
    line: place.line(row.type, row.version),
    status: row.status,
    seq: row.seq,
    priority: row.priority,
    round: 1,
    attempt: row.attempt,
    known: row.known,
  });
  task.order = row.order;
  task.cancelRequested = row.cancelRequested;
  task.submittedAt = row.submittedAt;
  task.dueAt = row.dueAt;
  task.payloadSeq = row.payloadSeq;
  task.rare = row.rare;
  if (row.rare !== undefined) task.keepKeys(row.rare);
  return task;
}
