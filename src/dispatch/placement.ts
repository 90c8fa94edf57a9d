import type { Priority } from '../domain/names.ts';
import { Deque } from './deque.ts';
import { type LiveTask, Mode } from './live-task.ts';
import type { Order } from './order.ts';
import { lineKey, TypeLine, type WindowLimits } from './type-line.ts';
import { WakeList } from './wake-list.ts';

/**
 * How long after its due time a task waits for the server's timer before the core wakes it. Long enough for a timer in
 * calm times (1-2 ms) and some difference of clocks, short enough for bursts, in which the server is up to a second late.
 */
export const TIMER_GRACE_MS = 100;

/**
 * Where every live task stands (see Mode) and the counts that follow from it.
 *
 * Invariant: a mode changes only in `to`, `delay`, `takeNext`, `takeDoomed` and `takeAging`, so the counts always agree with the modes.
 */
export class Placement {
  readonly #window: WindowLimits;
  readonly #newOrder: () => Order;
  readonly #lines = new Map<string, TypeLine>();
  /** Lines whose work or room has changed since they were last taken. */
  #dirty: TypeLine[] = [];
  readonly #delayed = new WakeList((task, at) => task.mode === Mode.delayed && wakeAtOf(task) === at);
  readonly #deadlines = new WakeList((task) => task.mode !== Mode.gone && task.deadlineWatched);
  readonly #doomed = new Deque<LiveTask>();
  readonly #aging = new Deque<{ readonly task: LiveTask; readonly seq: number }>();
  readonly #offered = new Set<LiveTask>();
  #ending = 0;
  #carrying = 0;

  constructor(window: WindowLimits, newOrder: () => Order) {
    this.#window = window;
    this.#newOrder = newOrder;
  }

  get lines(): Iterable<TypeLine> {
    return this.#lines.values();
  }

  get lineCount(): number {
    return this.#lines.size;
  }

  /** QUEUED and not yet claimed. */
  get offered(): Iterable<LiveTask> {
    return this.#offered;
  }

  /** Appends under way that end a task. */
  get ending(): number {
    return this.#ending;
  }

  /** Appends under way that renew a task. */
  get carrying(): number {
    return this.#carrying;
  }

  line(type: string, version: number): TypeLine {
    const key = lineKey(type, version);
    let line = this.#lines.get(key);
    if (line === undefined) {
      line = new TypeLine({ type, version }, this.#newOrder(), this.#window);
      this.#lines.set(key, line);
    }
    return line;
  }

  /** Its version was not known: it belongs to another line. */
  move(task: LiveTask, version: number): void {
    const { mode, line } = task;
    if (line.version === version) return;
    this.#leave(task);
    task.line = this.line(line.type, version);
    this.#enter(task, mode);
  }

  /** Where a task belongs that has no time to wait for: its line, or its end. */
  settle(task: LiveTask, now: number): void {
    const next = task.rare?.next;
    const expired = task.deadlineAt !== undefined && task.deadlineAt <= now;
    if ((next !== undefined && 'final' in next) || task.cancelRequested || expired) {
      this.doom(task);
      return;
    }
    this.to(task, task.status === 'QUEUED' ? Mode.queued : Mode.waiting);
    this.watchDeadline(task);
  }

  /** Back to where it stood before an append that was to change nothing, or nothing yet. */
  resume(task: LiveTask, now: number): void {
    if (task.dueAt > now && task.status !== 'QUEUED')
      this.delay(task, { dueAt: task.dueAt, timed: task.timed });
    else this.settle(task, now);
  }

  /** The task should announce itself again, unless it has moved by the time its turn comes. */
  age(task: LiveTask): void {
    this.#aging.push({ task, seq: task.seq });
  }

  doom(task: LiveTask): void {
    this.to(task, Mode.doomed);
    this.#doomed.push(task);
  }

  /** `timed`: a server-side timer should wake it first. */
  delay(task: LiveTask, { dueAt, timed }: { dueAt: number; timed: boolean }): void {
    this.#leave(task);
    task.dueAt = dueAt;
    task.timed = timed;
    this.#enter(task, Mode.delayed);
    this.#delayed.add(task, wakeAtOf(task));
    this.watchDeadline(task);
  }

  to(task: LiveTask, mode: Mode): void {
    this.#leave(task);
    this.#enter(task, mode);
  }

  reclass(task: LiveTask, priority: Priority): void {
    const { mode } = task;
    if (mode === Mode.waiting) this.#leave(task);
    task.priority = priority;
    if (mode === Mode.waiting) this.#enter(task, Mode.waiting);
  }

  watchDeadline(task: LiveTask): void {
    const { deadlineAt } = task;
    if (deadlineAt === undefined || task.deadlineWatched) return;
    task.deadlineWatched = true;
    this.#deadlines.add(task, deadlineAt);
  }

  /** The task has ended. */
  drop(task: LiveTask): void {
    this.to(task, Mode.gone);
    if (task.deadlineWatched) this.#deadlines.dropped();
  }

  /** When `takeDue` or `takeExpired` next has something (ms since 1970); Infinity when never. */
  nextWakeAt(): number {
    return Math.min(this.#delayed.nextAt(), this.#deadlines.nextAt());
  }

  /** A delayed task to be woken; the caller moves it on. */
  takeDue(now: number): LiveTask | undefined {
    return this.#delayed.take(now);
  }

  /** A task past its deadline that waits for something; one that is running is left alone until it comes back. */
  takeExpired(now: number): LiveTask | undefined {
    for (let task = this.#deadlines.take(now); task !== undefined; task = this.#deadlines.take(now)) {
      task.deadlineWatched = false;
      this.#deadlines.dropped();
      if (task.mode === Mode.waiting || task.mode === Mode.delayed || task.mode === Mode.queued) return task;
    }
    return undefined;
  }

  /** A task to be ended, now `ending`. */
  takeDoomed(): LiveTask | undefined {
    for (let task = this.#doomed.shift(); task !== undefined; task = this.#doomed.shift()) {
      if (task.mode !== Mode.doomed) continue;
      this.#enter(task, Mode.ending);
      return task;
    }
    return undefined;
  }

  /** A task to be renewed, now `carrying`. */
  takeAging(): LiveTask | undefined {
    for (let aging = this.#aging.shift(); aging !== undefined; aging = this.#aging.shift()) {
      const { task, seq } = aging;
      if (task.seq !== seq || !mayAge(task)) continue;
      this.to(task, Mode.carrying);
      return task;
    }
    return undefined;
  }

  /** The next task of a line that has room, now `queueing`. */
  takeNext(line: TypeLine): LiveTask | undefined {
    if (line.room <= 0) return undefined;
    const task = line.order.next();
    // Not `to`: the order knows already that the task has left.
    if (task !== undefined) this.#enter(task, Mode.queueing);
    return task;
  }

  takeDirty(): TypeLine[] {
    const dirty = this.#dirty;
    this.#dirty = [];
    for (const line of dirty) line.dirty = false;
    return dirty;
  }

  touch(line: TypeLine): void {
    if (line.dirty) return;
    line.dirty = true;
    this.#dirty.push(line);
  }

  #leave(task: LiveTask): void {
    const { line, mode } = task;
    task.mode = Mode.gone;
    switch (mode) {
      case Mode.waiting:
        line.order.left(task);
        return;
      case Mode.delayed:
        line.delayed -= 1;
        this.#delayed.dropped();
        return;
      case Mode.doomed:
        // A follower never takes from it: stale heads must not gather.
        while (this.#doomed.length > 0 && this.#doomed.peek()?.mode !== Mode.doomed) this.#doomed.shift();
        return;
      case Mode.queueing:
        line.intents -= 1;
        this.touch(line);
        return;
      case Mode.ending:
        this.#ending -= 1;
        return;
      case Mode.carrying:
        this.#carrying -= 1;
        return;
      case Mode.queued:
        line.ready -= 1;
        this.#offered.delete(task);
        this.touch(line);
        return;
      case Mode.running:
        line.running -= 1;
        return;
      case Mode.moved:
      case Mode.gone:
        return;
      default:
        mode satisfies never;
    }
  }

  #enter(task: LiveTask, mode: Mode): void {
    const { line } = task;
    task.mode = mode;
    switch (mode) {
      case Mode.waiting:
        line.order.add(task);
        this.touch(line);
        return;
      case Mode.delayed:
        line.delayed += 1;
        return;
      case Mode.queueing:
        line.intents += 1;
        return;
      case Mode.ending:
        this.#ending += 1;
        return;
      case Mode.carrying:
        this.#carrying += 1;
        return;
      case Mode.queued:
        line.ready += 1;
        this.#offered.add(task);
        return;
      case Mode.running:
        line.running += 1;
        return;
      case Mode.doomed:
      case Mode.moved:
      case Mode.gone:
        return;
      default:
        mode satisfies never;
    }
  }
}

/** Whether nobody but the dispatcher would renew it: a running task is its worker's, a queued one is work on offer. */
export const mayAge = ({ mode }: LiveTask): boolean => mode === Mode.waiting || mode === Mode.delayed;

const wakeAtOf = ({ dueAt, timed }: LiveTask): number => (timed ? dueAt + TIMER_GRACE_MS : dueAt);
