import { Deque } from './deque.ts';
import { KeyHeap } from './key-heap.ts';
import { type LiveTask, Mode } from './live-task.ts';

/**
 * Which waiting task of a type goes next. The seam for fairness: an order that ages classes and shares them among
 * tenants replaces the one below without the core noticing.
 *
 * A task is in the order while its mode is `waiting`. Leaving is announced, but the reference may stay until it surfaces.
 */
export interface Order {
  /** Tasks that wait. */
  readonly size: number;
  add(task: LiveTask): void;
  /** Takes the next task out. */
  next(): LiveTask | undefined;
  /** The task has left by another way; its mode is no longer `waiting`. */
  left(task: LiveTask): void;
}

const CLASSES = [1, 2, 3, 4] as const;

/** Priority classes served strictly, 1 first; within a class by the sequence of submission. */
export class PriorityFifo implements Order {
  readonly #classes = CLASSES.map((priority) => new SubmissionFifo(priority));
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(task: LiveTask): void {
    this.#classes[task.priority - 1]?.add(task);
    this.#size += 1;
  }

  next(): LiveTask | undefined {
    for (const fifo of this.#classes) {
      const task = fifo.next();
      if (task === undefined) continue;
      this.#size -= 1;
      return task;
    }
    return undefined;
  }

  left(task: LiveTask): void {
    this.#size -= 1;
    this.#classes[task.priority - 1]?.left();
  }
}

/** Stale references are only worth a clean-up when there are more than this many. */
const SWEEP_FROM = 256;

/**
 * FIFO by `order`. New submissions come in order, so they go to a deque (O(1)); what comes back (retries, delayed tasks)
 * is older than the deque's tail and goes to a small heap. The next task is the older of the two heads.
 */
class SubmissionFifo {
  readonly #priority: number;
  readonly #fresh = new Deque<LiveTask>();
  readonly #returned = new KeyHeap<LiveTask>();
  #live = 0;

  constructor(priority: number) {
    this.#priority = priority;
  }

  add(task: LiveTask): void {
    this.#live += 1;
    const last = this.#fresh.last();
    if (last === undefined || last.order < task.order) this.#fresh.push(task);
    else this.#returned.push(task.order, task);
  }

  next(): LiveTask | undefined {
    if (this.#live === 0) return undefined;
    for (;;) {
      const fresh = this.#fresh.peek();
      const returned = this.#returned.top();
      if (fresh === undefined && returned === undefined) return undefined;
      const takeFresh = returned === undefined || (fresh !== undefined && fresh.order < returned.order);
      const task = takeFresh ? this.#fresh.shift() : this.#returned.pop();
      if (task === undefined || !this.#waits(task)) continue;
      this.#live -= 1;
      return task;
    }
  }

  /** Keeps stale references below half of all, so a follower that only watches others take tasks does not grow. */
  left(): void {
    this.#live -= 1;
    for (let head = this.#fresh.peek(); head !== undefined && !this.#waits(head); head = this.#fresh.peek())
      this.#fresh.shift();
    const references = this.#fresh.length + this.#returned.length;
    if (references < SWEEP_FROM || references < 2 * this.#live) return;
    this.#fresh.retain((task) => this.#waits(task));
    this.#returned.retain((task) => this.#waits(task));
  }

  #waits(task: LiveTask): boolean {
    return task.mode === Mode.waiting && task.priority === this.#priority;
  }
}
