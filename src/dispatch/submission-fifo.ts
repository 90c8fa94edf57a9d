import { Deque } from './deque.ts';
import { KeyHeap } from './key-heap.ts';
import type { LiveTask } from './live-task.ts';

/** Stale references are only worth a clean-up when there are more than this many. */
const SWEEP_FROM = 256;

/**
 * FIFO by `order`. New submissions come in order, so they go to a deque (O(1)); what comes back (retries, delayed tasks)
 * is older than the deque's tail and goes to a small heap. The next task is the older of the two heads.
 *
 * Leaving is announced, but the reference may stay until it surfaces: the owner tells which references count.
 */
export class SubmissionFifo {
  readonly #counts: (task: LiveTask) => boolean;
  readonly #fresh = new Deque<LiveTask>();
  readonly #returned = new KeyHeap<LiveTask>();
  #live = 0;

  constructor(counts: (task: LiveTask) => boolean) {
    this.#counts = counts;
  }

  get size(): number {
    return this.#live;
  }

  add(task: LiveTask): void {
    this.#live += 1;
    const last = this.#fresh.last();
    if (last === undefined || last.order < task.order) this.#fresh.push(task);
    else this.#returned.push(task.order, task);
  }

  /** Takes the oldest out; the owner sees to it that it counts no longer. */
  next(): LiveTask | undefined {
    if (this.#live === 0) return undefined;
    for (;;) {
      const fresh = this.#fresh.peek();
      const returned = this.#returned.top();
      if (fresh === undefined && returned === undefined) return undefined;
      const takeFresh = returned === undefined || (fresh !== undefined && fresh.order < returned.order);
      const task = takeFresh ? this.#fresh.shift() : this.#returned.pop();
      if (task === undefined || !this.#counts(task)) continue;
      this.#live -= 1;
      return task;
    }
  }

  /** One counts no longer. Keeps stale references below half of all, so a follower that only watches does not grow. */
  left(): void {
    this.#live -= 1;
    for (let head = this.#fresh.peek(); head !== undefined && !this.#counts(head); head = this.#fresh.peek())
      this.#fresh.shift();
    const references = this.#fresh.length + this.#returned.length;
    if (references < SWEEP_FROM || references < 2 * this.#live) return;
    this.#fresh.retain(this.#counts);
    this.#returned.retain(this.#counts);
  }

  /** How many count that are older than `task`. O(n). */
  ahead(task: LiveTask): number {
    const older = new Set<LiveTask>();
    const see = (other: LiveTask): void => {
      if (other.order < task.order && this.#counts(other)) older.add(other);
    };
    this.#fresh.forEach(see);
    this.#returned.forEach(see);
    return older.size;
  }
}
