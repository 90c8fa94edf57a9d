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
      if (row.holds && row.mode === Mode.doomed) place.ledger.take(task, { at: 0, token: false });
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

/** Lanes take what comes in order at no cost. */
const inOrder = (tasks: LiveTask[]): LiveTask[] => tasks.sort((one, other) => one.order - other.order);

function taskOf(row: TaskRow, place: Placement): LiveTask {
  const task = new LiveTask({
    ...row,
    share: place.ledger.share(row.tenant, row.type),
    line: place.line(row.type, row.version),
    round: row.rare?.round ?? 1,
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
