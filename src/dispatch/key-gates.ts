import { KeyHeap } from './key-heap.ts';
import { type LiveTask, Mode, Spot } from './live-task.ts';
import type { Share } from './share.ts';

/**
 * What holds tasks of one tenant and type back by their keys. A task that is held back is in no lane, so it costs
 * nothing; the event that frees its key puts the next one in.
 *
 * `orderingKey`: tasks of a key start one after the other, by the sequence of submission. The oldest has the turn, also
 * while it is delayed; once one has started it keeps the turn over its retries until it has ended.
 * `concurrencyKey`: as many tasks of a key hold a slot at one time as the type allows.
 */
export class KeyGates {
  readonly #share: Share;
  readonly #orderings = new Map<string, Ordering>();
  readonly #concurrencies = new Map<string, Concurrency>();

  constructor(share: Share) {
    this.#share = share;
  }

  /** The task's keys are known: it takes its place among those of its ordering key. */
  enrol(task: LiveTask): void {
    const key = task.rare?.orderingKey;
    if (key === undefined || task.enrolled) return;
    task.enrolled = true;
    let ordering = this.#orderings.get(key);
    if (ordering === undefined) {
      ordering = new Ordering();
      this.#orderings.set(key, ordering);
    }
    ordering.tasks.push(task.order, task);
    if (task.holds) ordering.start(task);
  }

  /** The task has begun to wait: into its lane, or behind what holds it back. One that says already that it is in its lane stays there. */
  place(task: LiveTask): void {
    const inLane = task.spot === Spot.lane;
    const ordering = inLane ? undefined : this.#orderingOf(task);
    if (ordering !== undefined && !ordering.hasTurn(task)) {
      task.spot = Spot.ordered;
      return;
    }
    const concurrency = this.#concurrencyOf(task);
    if (concurrency === undefined) this.#share.enter(task);
    else if (inLane || concurrency.wants(task.priority, this.#share.type.keyLimit)) {
      concurrency.candidates[task.priority - 1] = concurrency.candidatesOf(task.priority) + 1;
      this.#share.enter(task);
    } else concurrency.hold(task);
  }

  /** Whether a task that came out of its lane may start; one that may not is held back again. */
  admits(task: LiveTask): boolean {
    const concurrency = this.#concurrencyOf(task);
    concurrency?.drop(task.priority);
    const ordering = this.#orderingOf(task);
    if (ordering !== undefined && !ordering.hasTurn(task)) {
      task.spot = Spot.ordered;
      if (concurrency !== undefined) this.#fill(concurrency);
      return false;
    }
    const { keyLimit, keysHeld } = this.#share.type;
    if (concurrency === undefined || (concurrency.taken < keyLimit && !keysHeld)) return true;
    concurrency.hold(task);
    return false;
  }

  /** A waiting task has left from where it waited. */
  left(task: LiveTask, spot: Spot): void {
    const concurrency = spot === Spot.lane ? this.#concurrencyOf(task) : undefined;
    if (concurrency === undefined) return;
    concurrency.drop(task.priority);
    this.#freed(task, concurrency);
  }

  /** The task has taken a slot. */
  took(task: LiveTask): void {
    const ordering = this.#orderingOf(task);
    if (ordering !== undefined) ordering.start(task);
    const concurrency = this.#concurrencyOf(task);
    if (concurrency === undefined || task.holdsKey) return;
    task.holdsKey = true;
    concurrency.taken += 1;
  }

  /** The task has given its slot back. */
  released(task: LiveTask): void {
    if (!task.holdsKey) return;
    task.holdsKey = false;
    const concurrency = this.#concurrencyOf(task);
    if (concurrency === undefined) return;
    concurrency.taken -= 1;
    this.#freed(task, concurrency);
  }

  /** The task has ended: the next of its ordering key has the turn. */
  ended(task: LiveTask): void {
    const key = task.rare?.orderingKey;
    const ordering = key === undefined ? undefined : this.#orderings.get(key);
    if (key === undefined || ordering === undefined || !task.enrolled) return;
    task.enrolled = false;
    ordering.end(task);
    const next = ordering.oldest();
    if (next === undefined) this.#orderings.delete(key);
    else if (next.mode === Mode.waiting && next.spot === Spot.ordered) this.place(next);
  }

  /** The limit of concurrency keys has changed. */
  limitChanged(): void {
    for (const concurrency of this.#concurrencies.values()) this.#fill(concurrency);
  }

  /** The task that the ordering key waits for. */
  turnOf(task: LiveTask): LiveTask | undefined {
    const ordering = this.#orderingOf(task);
    return ordering?.holder ?? ordering?.oldest();
  }

  /** Whether the ordering key is the task's own until it ends. */
  hasStarted(task: LiveTask): boolean {
    return this.#orderingOf(task)?.isHolder(task) ?? false;
  }

  /** The same, from a snapshot: the task is enrolled and may have no slot at the moment. */
  restoreStarted(task: LiveTask): void {
    this.#orderingOf(task)?.start(task);
  }

  #orderingOf(task: LiveTask): Ordering | undefined {
    const key = task.rare?.orderingKey;
    return key === undefined ? undefined : this.#orderings.get(key);
  }

  #concurrencyOf(task: LiveTask): Concurrency | undefined {
    const key = task.rare?.concurrencyKey;
    if (key === undefined) return undefined;
    let concurrency = this.#concurrencies.get(key);
    if (concurrency === undefined) {
      concurrency = new Concurrency();
      this.#concurrencies.set(key, concurrency);
    }
    return concurrency;
  }

  #freed(task: LiveTask, concurrency: Concurrency): void {
    this.#fill(concurrency);
    if (concurrency.idle) this.#concurrencies.delete(task.rare?.concurrencyKey ?? '');
  }

  #fill(concurrency: Concurrency): void {
    for (let priority = 1; priority <= 4; priority += 1) {
      while (concurrency.wants(priority, this.#share.type.keyLimit)) {
        const task = concurrency.takeHeld(priority);
        if (task === undefined) break;
        this.place(task);
      }
    }
  }
}

class Ordering {
  /** Those that have not ended, by the sequence of submission; stale ones until they surface. */
  readonly tasks = new KeyHeap<LiveTask>();
  /**
   * Those that have been given a slot and have not ended: one, unless another leader decided otherwise, or a snapshot
   * shows the end of one after the start of the next.
   */
  readonly #started: LiveTask[] = [];

  get holder(): LiveTask | undefined {
    return this.#started[0];
  }

  isHolder(task: LiveTask): boolean {
    return this.#started.includes(task);
  }

  hasTurn(task: LiveTask): boolean {
    return this.#started.length === 0 ? this.oldest() === task : this.isHolder(task);
  }

  start(task: LiveTask): void {
    if (!this.isHolder(task)) this.#started.push(task);
  }

  end(task: LiveTask): void {
    const at = this.#started.indexOf(task);
    if (at >= 0) this.#started.splice(at, 1);
  }

  oldest(): LiveTask | undefined {
    for (;;) {
      const task = this.tasks.top();
      if (task === undefined || task.enrolled) return task;
      this.tasks.pop();
    }
  }
}

class Concurrency {
  taken = 0;
  /** Tasks in lanes, by class: no more than could start, or lanes would be searched for those that may. */
  readonly candidates = [0, 0, 0, 0];
  readonly #held = [1, 2, 3, 4].map(() => new KeyHeap<LiveTask>());

  get idle(): boolean {
    return (
      this.taken === 0 &&
      this.candidates.every((n) => n === 0) &&
      this.#held.every((held) => held.length === 0)
    );
  }

  candidatesOf(priority: number): number {
    return this.candidates[priority - 1] ?? 0;
  }

  /** Whether one more of the class could start. */
  wants(priority: number, limit: number): boolean {
    return this.candidatesOf(priority) < limit - this.taken;
  }

  drop(priority: number): void {
    this.candidates[priority - 1] = this.candidatesOf(priority) - 1;
  }

  hold(task: LiveTask): void {
    task.spot = Spot.held;
    this.#held[task.priority - 1]?.push(task.order, task);
  }

  takeHeld(priority: number): LiveTask | undefined {
    const held = this.#held[priority - 1];
    for (let task = held?.pop(); task !== undefined; task = held?.pop())
      if (task.mode === Mode.waiting && task.spot === Spot.held && task.priority === priority) return task;
    return undefined;
  }
}
