import { type LiveTask, Mode, Spot } from './live-task.ts';
import type { Share } from './share.ts';
import { SubmissionFifo } from './submission-fifo.ts';
import type { TypeLine } from './type-line.ts';

type LaneOf = Pick<Lane, 'share' | 'line' | 'priority' | 'siblings'>;

/** Tasks of one tenant, type and priority class that nothing but their turn holds back. */
export class Lane {
  readonly share: Share;
  readonly line: TypeLine;
  readonly priority: number;
  /** The lanes of the same share and line by class, best first. */
  readonly siblings: readonly (Lane | undefined)[];
  readonly #tasks: SubmissionFifo;
  /** Virtual time of its next turn (see Rotation). */
  turnAt = 0;
  /** Whether the rotation has it. */
  listed = false;
  /** Starts that better classes of the same tenant were given while this one could give. */
  passed = 0;

  constructor(of: LaneOf) {
    const { priority } = of;
    this.share = of.share;
    this.line = of.line;
    this.priority = priority;
    this.siblings = of.siblings;
    this.#tasks = new SubmissionFifo(
      (task) => task.mode === Mode.waiting && task.spot === Spot.lane && task.priority === priority,
    );
  }

  get size(): number {
    return this.#tasks.size;
  }

  /** Whether it can give: it has tasks, and its tenant is at no limit. */
  get open(): boolean {
    return this.#tasks.size > 0 && this.share.free;
  }

  add(task: LiveTask): void {
    task.spot = Spot.lane;
    this.#tasks.add(task);
  }

  next(): LiveTask | undefined {
    const task = this.#tasks.next();
    if (task !== undefined) task.spot = Spot.none;
    return task;
  }

  left(task: LiveTask): void {
    task.spot = Spot.none;
    this.#tasks.left();
  }

  ahead(task: LiveTask): number {
    return this.#tasks.ahead(task);
  }
}
