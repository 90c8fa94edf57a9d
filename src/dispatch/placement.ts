import type { Priority } from '../domain/names.ts';
import { holdsAt } from '../registry/controls.ts';
import { Deque } from './deque.ts';
import { Ledger } from './ledger.ts';
import { type LiveTask, Mode, Spot } from './live-task.ts';
import { lineKey, TypeLine, type WindowLimits } from './type-line.ts';
import { WakeList } from './wake-list.ts';

/**
 * Where every live task stands (see Mode) and the counts that follow from it.
 *
 * Invariant: a mode changes only in `to`, `delay`, `takeNext`, `takeDoomed` and `takeAging`, so the counts always agree with the modes.
 *
 * A slot (see Ledger) is taken with the turn, or when the log says that the task was queued or runs. It is given back when
 * the attempt has ended, when the task waits again, and at its end; not while the outcome of the append is unknown: such
 * a task is in no lane, and decided again before anybody else gets the slot.
 */
export class Placement {
  readonly #window: WindowLimits;
  readonly #lines = new Map<string, TypeLine>();
  /** Lines whose work or room has changed since they were last taken. */
  #dirty: TypeLine[] = [];
  readonly #delayed = new WakeList((task, at) => task.mode === Mode.delayed && task.dueAt === at);
  readonly #deadlines = new WakeList((task) => task.mode !== Mode.gone && task.deadlineWatched);
  readonly #doomed = new Deque<LiveTask>();
  /** Waiting with a slot, because they are unsure. */
  #unsure: LiveTask[] = [];
  readonly #aging = new Deque<{ readonly task: LiveTask; readonly seq: number }>();
  readonly #offered = new Set<LiveTask>();
  #ending = 0;
  #carrying = 0;
  /** Turns given so far, over all lines. */
  #turns = 0;
  readonly ledger: Ledger;

  constructor(window: WindowLimits) {
    this.#window = window;
    this.ledger = new Ledger({ touch: (line) => this.touch(line) });
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
      line = new TypeLine({ terms: this.ledger.type(type), version }, this.#window);
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
    const ended = next !== undefined && 'final' in next && !task.forgiven;
    if (ended || task.cancelRequested || expired) {
      this.doom(task);
      return;
    }
    this.to(task, task.status === 'QUEUED' ? Mode.queued : Mode.waiting);
    this.watchDeadline(task);
  }

  /** Back to where it stood before an append that was to change nothing, or nothing yet. */
  resume(task: LiveTask, now: number): void {
    if (task.dueAt > now && task.status !== 'QUEUED') this.delay(task, task.dueAt);
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

  delay(task: LiveTask, dueAt: number): void {
    this.#leave(task);
    task.dueAt = dueAt;
    this.#enter(task, Mode.delayed);
    this.#delayed.add(task, dueAt);
    this.watchDeadline(task);
  }

  /** From a snapshot: a task that has been nowhere yet. */
  restore(task: LiveTask, mode: Mode): void {
    if (mode === Mode.delayed) {
      this.delay(task, task.dueAt);
      return;
    }
    if (mode === Mode.doomed) this.doom(task);
    else this.to(task, mode);
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
    this.ledger.release(task);
    if (task.keyed) {
      task.share.gates.ended(task);
      this.ledger.touch(task.share.type);
    }
    if (task.deadlineWatched) this.#deadlines.dropped();
  }

  /** When `takeDue` or `takeExpired` next has something (ms since 1970); Infinity when never. */
  nextWakeAt(): number {
    return Math.min(this.#delayed.nextAt(), this.#deadlines.nextAt(), this.ledger.nextWakeAt());
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
  takeNext(line: TypeLine, now: number): LiveTask | undefined {
    if (!line.hasRoom) return undefined;
    const task = line.order.next();
    if (task === undefined) return undefined;
    // Not `to`: the order knows already that the task has left.
    this.#turns += 1;
    line.servedAt = this.#turns;
    line.waiting -= 1;
    task.share.tenant.backlog -= 1;
    this.ledger.promise(task, now);
    this.#enter(task, Mode.queueing);
    return task;
  }

  /** The unsure tasks that may be queued again, now `queueing`; the others stay. */
  takeUnsure(now: number): LiveTask[] {
    if (this.#unsure.length === 0) return [];
    const taken: LiveTask[] = [];
    const waiting = this.#unsure.filter(({ mode, unsure }) => mode === Mode.waiting && unsure);
    this.#unsure = waiting.filter((task) => {
      if (task.mode !== Mode.waiting) return false;
      if (!task.line.windowOpen || isPaused(task, now)) return true;
      this.to(task, Mode.queueing);
      taken.push(task);
      return false;
    });
    return taken;
  }

  /** The log says that the task was queued, by whomever. */
  queued(task: LiveTask, storedAt: number): void {
    this.ledger.queued(task, storedAt);
    this.to(task, Mode.queued);
    this.watchDeadline(task);
  }

  /** The lines to look at; the one whose last turn is longest ago comes first. */
  takeDirty(): TypeLine[] {
    const dirty = this.#dirty;
    this.#dirty = [];
    for (const line of dirty) line.dirty = false;
    return dirty.length > 1 ? dirty.sort((a, b) => a.servedAt - b.servedAt) : dirty;
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
        line.waiting -= 1;
        task.share.tenant.backlog -= 1;
        this.#leaveSpot(task);
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
        task.share.tenant.backlog -= 1;
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
        task.share.tenant.backlog -= 1;
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

  #leaveSpot(task: LiveTask): void {
    const { spot, share } = task;
    if (spot === Spot.lane) share.lane(task).left(task);
    task.spot = Spot.none;
    if (task.keyed) share.gates.left(task, spot);
  }

  #enter(task: LiveTask, mode: Mode): void {
    const { line } = task;
    task.mode = mode;
    switch (mode) {
      case Mode.waiting:
        line.waiting += 1;
        task.share.tenant.backlog += 1;
        this.touch(line);
        if (task.unsure && task.holds) {
          this.#unsure.push(task);
          return;
        }
        this.ledger.release(task);
        if (task.keyed) task.share.gates.place(task);
        else task.share.enter(task);
        return;
      case Mode.delayed:
        line.delayed += 1;
        return;
      case Mode.queueing:
        line.intents += 1;
        task.share.tenant.backlog += 1;
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
        task.share.tenant.backlog += 1;
        this.ledger.hold(task);
        return;
      case Mode.running:
        line.running += 1;
        this.ledger.hold(task);
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

const isPaused = ({ share }: LiveTask, now: number): boolean =>
  [share.type, share.tenant, share].some(({ pause }) => pause !== undefined && holdsAt(pause, now));
