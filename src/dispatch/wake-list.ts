import { KeyHeap } from './key-heap.ts';
import type { LiveTask } from './live-task.ts';

/** Stale entries are only worth a clean-up when there are more than this many. */
const SWEEP_FROM = 1_024;

/**
 * Tasks by an instant (ms since 1970) at which something happens to them. An entry counts while `counts` says so; the
 * owner reports with `dropped` when one stops counting, so that stale entries stay below half.
 */
export class WakeList {
  readonly #heap = new KeyHeap<LiveTask>();
  readonly #counts: (task: LiveTask, at: number) => boolean;
  #live = 0;

  constructor(counts: (task: LiveTask, at: number) => boolean) {
    this.#counts = counts;
  }

  /** The earliest instant, stale entries included; Infinity when there is none. */
  nextAt(): number {
    return this.#heap.topKey();
  }

  add(task: LiveTask, at: number): void {
    this.#live += 1;
    this.#heap.push(at, task);
  }

  /** An entry counts no longer. */
  dropped(): void {
    this.#live -= 1;
    if (this.#heap.length > SWEEP_FROM && this.#heap.length > 2 * this.#live) this.#heap.retain(this.#counts);
  }

  /** The next task whose instant is not after `now`; it must be `dropped` when it stops counting. */
  take(now: number): LiveTask | undefined {
    while (this.#heap.topKey() <= now) {
      const at = this.#heap.topKey();
      const task = this.#heap.pop();
      if (task !== undefined && this.#counts(task, at)) return task;
    }
    return undefined;
  }
}
