import type { Recorded } from '../domain/events.ts';
import type { TaskState } from '../domain/task.ts';
import type { CoreSettings, Decision, LineStats, Phase, Woken } from './decisions.ts';
import { EventFold } from './event-fold.ts';
import { explain, type WhyFact } from './explain.ts';
import { Lateness } from './lateness.ts';
import type { Ledger, TokenState } from './ledger.ts';
import { delayedByType, flowOf, statsOf, waitingByLine, waitingByType } from './line-figures.ts';
import { isIntent, type LiveTask, Mode } from './live-task.ts';
import { PayloadCache } from './payload-cache.ts';
import { mayAge, Placement } from './placement.ts';
import type { RestoredBlock } from './snapshot/format.ts';
import { restoreTasks, type SeenByShard } from './snapshot/restore.ts';
import { rowOf, type TaskRow } from './snapshot/task-row.ts';
import { TaskIndex } from './task-index.ts';
import type { TypeLine } from './type-line.ts';

/** Dead letters and cancellations whose appends may be under way together. */
const MAX_ENDING = 256;
/** Renewals likewise: they are many at once and never urgent. */
const MAX_CARRYING = 64;

/**
 * The deciding part of the dispatcher: a deterministic state machine over the log. It has no clock, no I/O and no
 * randomness; the same inputs in the same order give the same decisions.
 *
 * Inputs: `observe` (an event of the log, in order), `advance` (the servers' time), settings and pauses (`terms`), and
 * what became of its decisions: `refused` or `unresolved` (a stored append needs no word, its event comes with the log).
 * Output: `decide`. Every input costs O(1) or O(log n) in the number of live tasks and of tenants.
 *
 * Invariant: a task has at most one append under way, between the decision and the next thing heard of the task.
 */
export class DispatchCore {
  readonly #settings: CoreSettings;
  readonly #tasks = new TaskIndex();
  readonly #place: Placement;
  readonly #payloads: PayloadCache;
  readonly #events: EventFold;
  readonly lateness = new Lateness();
  #phase: Phase = 'replaying';
  #position = 0;
  /** While the log is read on from a snapshot. */
  #seen: SeenByShard | undefined;

  constructor(settings: CoreSettings) {
    this.#settings = settings;
    this.#place = new Placement(settings.window);
    this.#payloads = new PayloadCache(settings);
    this.#events = new EventFold({ tasks: this.#tasks, place: this.#place, payloads: this.#payloads });
  }

  /** Sequence of the last event folded. */
  get position(): number {
    return this.#position;
  }

  get phase(): Phase {
    return this.#phase;
  }

  /** Tasks that have not ended. */
  get size(): number {
    return this.#tasks.size;
  }

  get cachedBytes(): number {
    return this.#payloads.bytes;
  }

  get lineCount(): number {
    return this.#place.lineCount;
  }

  get lines(): Iterable<Pick<TypeLine, 'type' | 'version' | 'key'>> {
    return this.#place.lines;
  }

  /** Work items that nobody has claimed: at most the ready windows together. */
  get offered(): Iterable<Pick<LiveTask, 'tenant' | 'id' | 'line' | 'seq'>> {
    return this.#place.offered;
  }

  /** No event before this sequence is a work item of the type and version that nobody has claimed. */
  workFrom(type: string, version: number): number {
    let fromSeq = this.#position + 1;
    for (const { line, seq } of this.#place.offered)
      if (line.type === type && line.version === version) fromSeq = Math.min(fromSeq, seq);
    return fromSeq;
  }

  /** Tenants' and types' settings, and pauses: tell it all that there is before the log, and every change. */
  get terms(): Pick<Ledger, 'putTenant' | 'putType' | 'putPause' | 'holdLimited'> {
    return this.#place.ledger;
  }

  enter(phase: Phase): void {
    const replayed = this.#phase === 'replaying';
    this.#phase = phase;
    this.#events.past = phase === 'replaying';
    for (const line of this.#place.lines) {
      if (replayed) line.setClaimsAside();
      this.#place.touch(line);
    }
  }

  /** What a snapshot keeps besides the tasks, as of `position`. */
  get tokens(): readonly TokenState[] {
    return this.#place.ledger.tokens;
  }

  /** The tasks of one shard, as of `position`. */
  rows(shard: number): readonly TaskRow[] {
    return this.#tasks.shard(shard).map(rowOf);
  }

  /** Takes up where a snapshot stood. Before any event, and after all settings. */
  restore(snapshot: {
    readonly position: number;
    readonly tokens: readonly TokenState[];
    readonly blocks: readonly RestoredBlock[];
  }): void {
    this.#place.ledger.restoreTokens(snapshot.tokens);
    this.#seen = restoreTasks(snapshot.blocks, { tasks: this.#tasks, place: this.#place });
    this.#position = snapshot.position;
  }

  /** Folds one event. One that was folded before is passed over. */
  observe(recorded: Recorded): void {
    const { event, seq } = recorded;
    if (seq <= this.#position) return;
    this.#position = seq;
    if (this.#seen?.isPast(seq)) this.#seen = undefined;
    if (this.#seen?.has(event.taskId, seq)) this.#pay(recorded);
    else this.#events.fold(recorded);
  }

  /** An event that its task has in it already: what it says of others. */
  #pay({ event, storedAt }: Recorded): void {
    if (event.kind === 'QUEUED' && event.from !== 'QUEUED')
      this.#place.ledger.charge(this.#place.ledger.share(event.tenant, event.type), storedAt);
  }

  /** Wakes what is due at `now` (ms since 1970), at most `limit` tasks: `nextWakeAt` tells whether that was all. */
  advance(now: number, limit = Number.POSITIVE_INFINITY): Woken {
    const woken = { due: 0, expired: 0 };
    this.#place.ledger.advance(now);
    while (woken.due < limit) {
      const task = this.#place.takeDue(now);
      if (task === undefined) break;
      woken.due += 1;
      if (this.#phase === 'leading') this.lateness.note(now - task.dueAt);
      this.#place.settle(task, now);
    }
    for (let task = this.#place.takeExpired(now); task !== undefined; task = this.#place.takeExpired(now)) {
      woken.expired += 1;
      this.#place.doom(task);
    }
    return woken;
  }

  /** When `advance` next has something to do (ms since 1970); Infinity when never. */
  nextWakeAt(): number {
    return this.#place.nextWakeAt();
  }

  /** Sizes the ready windows from the claims of the last `elapsedMs`. */
  measure(elapsedMs: number): void {
    for (const line of this.#place.lines) {
      line.measure(elapsedMs, this.#settings.window);
      if (line.waiting > 0) this.#place.touch(line);
    }
  }

  /**
   * Events up to `seq` will age out of the log before long: tasks that wait and have no later one are to announce
   * themselves again, the oldest first. O(n), for a call every few minutes. Answers how many there are.
   */
  age(seq: number): number {
    if (this.#phase !== 'leading') return 0;
    const aging: LiveTask[] = [];
    for (const task of this.#tasks.values()) if (task.seq <= seq && mayAge(task)) aging.push(task);
    for (const task of aging.sort((one, other) => one.seq - other.seq)) this.#place.age(task);
    return aging.length;
  }

  /** Adds everything that should be done at `now` (ms since 1970); nothing unless leading. */
  decide(decisions: Decision[], now: number): void {
    if (this.#phase !== 'leading') return;
    while (this.#place.ending < MAX_ENDING) {
      const task = this.#place.takeDoomed();
      if (task === undefined) break;
      decisions.push({ kind: task.cancelRequested ? 'cancel' : 'dead_letter', task, seq: task.seq });
    }
    while (this.#place.carrying < MAX_CARRYING) {
      const task = this.#place.takeAging();
      if (task === undefined) break;
      decisions.push({ kind: 'carry', task, seq: task.seq });
    }
    for (const task of this.#place.takeUnsure(now)) decisions.push({ kind: 'queue', task, seq: task.seq });
    this.#queueTurns(decisions, now);
  }

  /** One task of each line after the other, so that no type takes all that a tenant may have. */
  #queueTurns(decisions: Decision[], now: number): void {
    let lines = this.#place.takeDirty();
    while (lines.length > 0) {
      lines = lines.filter((line) => {
        const task = this.#place.takeNext(line, now);
        if (task === undefined) return false;
        decisions.push({ kind: 'queue', task, seq: task.seq });
        return true;
      });
    }
  }

  /** The append expecting `seq` was refused or is void: somebody moved the task. The log brings that event, or has brought it. */
  refused(task: LiveTask, seq: number): void {
    if (!isUnderWay(task, seq)) return;
    task.unsure = false;
    this.#place.to(task, Mode.moved);
  }

  /** Nobody knows whether the append expecting `seq` was stored, or it could not be made: put off until `retryAt` unless the log says more. */
  unresolved(task: LiveTask, seq: number, retryAt: number): void {
    if (!isUnderWay(task, seq)) return;
    // A renewal is wanted again when the log has aged a little more.
    if (task.mode === Mode.carrying) {
      this.#place.resume(task, retryAt);
      return;
    }
    task.unsure ||= task.mode === Mode.queueing;
    this.#place.delay(task, retryAt);
  }

  /** Instead of ending it as decided: the lost attempt that was its last does not count, and it waits for another. */
  forgive(task: LiveTask, now: number): void {
    if (task.mode !== Mode.ending) return;
    task.forgiven = true;
    this.#place.settle(task, now);
  }

  /**
   * What the log says of a task whose beginning was not seen. False when it has a key that may hold it back: what was
   * decided for it without that knowledge is void, and it waits again.
   */
  learn(task: LiveTask, state: TaskState, now: number): boolean {
    task.cancelRequested = state.cancelRequested;
    task.payloadSeq = state.payloadSeq;
    this.#events.learnFacts(task, state.facts);
    this.#place.watchDeadline(task);
    if (!task.keyed || task.mode !== Mode.queueing) return true;
    this.#place.resume(task, now);
    return false;
  }

  /** The log knows nothing of the task any more. */
  vanished(task: LiveTask): void {
    if (task.mode !== Mode.gone) this.#events.forget(task);
  }

  /** Why a task is not running. */
  explain(tenant: string, taskId: string, now: number): WhyFact[] {
    return explain(this.#tasks.get(tenant, taskId), now);
  }

  waiting(): Record<string, number> {
    return waitingByType(this.#place.lines);
  }

  delayed(): Record<string, number> {
    return delayedByType(this.#place.lines);
  }

  waitingLines(): ReturnType<typeof waitingByLine> {
    return waitingByLine(this.#place.lines);
  }

  /** The same by tenant, over all types, for tenants whose backlog is limited. */
  waitingByTenant(): Record<string, number> {
    return Object.fromEntries(this.#place.ledger.watched.map(({ name, backlog }) => [name, backlog]));
  }

  flow(): Record<string, Pick<LineStats, 'ready' | 'claimed'>> {
    return flowOf(this.#place.lines);
  }

  stats(): Record<string, LineStats> {
    return statsOf(this.#place.lines);
  }
}

/** Not so once an event has come that the append did not expect: what is under way since then, if anything, is another one. */
const isUnderWay = (task: LiveTask, seq: number): boolean => task.seq === seq && isIntent(task);
