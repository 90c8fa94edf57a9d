import {
  type EventOf,
  type Facts,
  FIRST_VERSION,
  type NextStep,
  type Recorded,
  type TaskEvent,
} from '../domain/events.ts';
import type { Priority } from '../domain/names.ts';
import { readId } from './id-bits.ts';
import { isIntent, LiveTask, Mode, PayloadSize } from './live-task.ts';
import type { PayloadCache } from './payload-cache.ts';
import type { Placement } from './placement.ts';
import type { TaskIndex } from './task-index.ts';
import { versionOf } from './version-of.ts';

interface FoldParts {
  readonly tasks: TaskIndex;
  readonly place: Placement;
  readonly payloads: PayloadCache;
}

/**
 * What each event of the log changes in the tasks that live: where they stand, and what is remembered of them.
 *
 * Invariant: every task that has not ended is in the index, once, and one that has ended is in no place.
 */
export class EventFold {
  readonly #parts: FoldParts;
  /** While the past is read: most of it has ended, so its payloads are not worth the work. */
  past = true;

  constructor(parts: FoldParts) {
    this.#parts = parts;
  }

  /** One event that its task does not have in it yet. */
  fold({ event, seq, storedAt }: Recorded): void {
    const known = this.#parts.tasks.get(event.tenant, event.taskId);
    switch (event.kind) {
      case 'INGESTED':
        this.#ingested(this.#begun(known, event, { seq, known: true }), event, storedAt);
        return;
      case 'REPLAYED':
        this.#replayed(this.#begun(known, event, { seq, known: false }), event, storedAt);
        return;
      case 'CARRIED':
        if (known === undefined)
          this.#carriedAnew(this.#begun(undefined, event, { seq, known: false }), event, storedAt);
        else this.#carriedOn(known, event, { seq, storedAt });
        return;
      case 'QUEUED':
        this.#queued(this.#moved(known, event, seq), event, storedAt);
        return;
      case 'CLAIMED':
      case 'PROCESSING':
        this.#ran(this.#moved(known, event, seq), event);
        return;
      case 'FAILED':
      case 'RETRY_CLAIMED':
        this.#attemptEnded(this.#moved(known, event, seq), event, storedAt);
        return;
      case 'CANCEL_REQUESTED':
        this.#cancelRequested(this.#moved(known, event, seq));
        return;
      case 'RESCHEDULED':
        this.#rescheduled(this.#moved(known, event, seq), event, storedAt);
        return;
      case 'REJECTED':
      case 'COMPLETED':
      case 'DEAD_LETTER':
      case 'CANCELLED':
      case 'DISCARDED':
        if (known !== undefined) this.forget(known);
        return;
      default:
        event satisfies never;
    }
  }

  /** What was not seen of a task because its beginning was not. */
  learnFacts(task: LiveTask, facts: Facts): void {
    task.known = true;
    task.keepFacts(facts);
    this.#parts.place.move(task, facts.version ?? FIRST_VERSION);
    if (!task.keyed) return;
    task.share.gates.enrol(task);
    if (task.holds) task.share.gates.took(task);
  }

  /** The task has ended. */
  forget(task: LiveTask): void {
    this.#parts.place.drop(task);
    this.#parts.payloads.drop(task);
    this.#parts.tasks.remove(task);
  }

  #ingested(task: LiveTask, event: EventOf<'INGESTED'>, storedAt: number): void {
    const { payload, policy, runAt, deadlineAt, orderingKey, concurrencyKey } = event.data;
    task.submittedAt = event.at;
    if (policy !== undefined || deadlineAt !== undefined || event.trace !== undefined)
      task.rare = { ...task.rare, policy, deadlineAt, trace: event.trace };
    if (orderingKey !== undefined || concurrencyKey !== undefined) {
      task.keepKeys({ orderingKey, concurrencyKey });
      task.share.gates.enrol(task);
    }
    task.payloadSeq = task.seq;
    if (!this.past) this.#parts.payloads.keep(task, payload);
    this.#delayUntil(task, runAt ?? 0, storedAt);
  }

  #replayed(task: LiveTask, event: EventOf<'REPLAYED'>, storedAt: number): void {
    if (event.trace !== undefined) task.rare = { ...task.rare, trace: event.trace };
    const facts = event.data.carried?.facts;
    if (facts !== undefined) {
      task.keepKeys({ orderingKey: facts.orderingKey, concurrencyKey: facts.concurrencyKey });
      if (task.keyed) task.share.gates.enrol(task);
    }
    this.#parts.place.settle(task, storedAt);
  }

  #queued(task: LiveTask, event: EventOf<'QUEUED'>, storedAt: number): void {
    task.status = 'QUEUED';
    task.dueAt = 0;
    task.forgiven = false;
    if (!task.known) this.learnFacts(task, event.data.facts);
    else if (event.data.facts.pardoned !== undefined) task.keepFacts(event.data.facts);
    // The newest event that holds the payload is the one to point at: it ages out last.
    task.payloadSeq = event.data.payload === undefined ? event.data.payloadSeq : task.seq;
    if (task.rare?.next !== undefined) task.rare = { ...task.rare, next: undefined };
    this.#parts.payloads.drop(task);
    this.#parts.place.queued(task, storedAt);
  }

  #ran(task: LiveTask, event: EventOf<'CLAIMED'> | EventOf<'PROCESSING'>): void {
    task.status = event.kind;
    if (event.kind === 'CLAIMED') task.line.claims += 1;
    if (task.mode !== Mode.running) this.#parts.place.to(task, Mode.running);
  }

  #attemptEnded(task: LiveTask, event: EventOf<'FAILED'> | EventOf<'RETRY_CLAIMED'>, storedAt: number): void {
    task.status = event.kind;
    this.#parts.place.ledger.release(task);
    if (event.kind === 'RETRY_CLAIMED') task.lost += 1;
    this.#after(task, event.data.next, storedAt);
  }

  #after(task: LiveTask, next: NextStep, storedAt: number): void {
    task.rare = { ...task.rare, next };
    if ('final' in next || task.cancelRequested) this.#parts.place.doom(task);
    else this.#delayUntil(task, storedAt + next.retryInMs, storedAt);
  }

  #cancelRequested(task: LiveTask): void {
    task.cancelRequested = true;
    if (task.mode === Mode.gone) this.#parts.place.to(task, Mode.running);
  }

  /** The priority was taken from the envelope. A due time that has gone stays gone, whoever set it. */
  #rescheduled(task: LiveTask, event: EventOf<'RESCHEDULED'>, storedAt: number): void {
    if (event.from !== null) task.status = event.from;
    if (event.data.payload !== undefined) {
      this.#parts.payloads.drop(task);
      task.payloadSeq = task.seq;
      task.payloadSize = PayloadSize.unknown;
      if (!this.past) this.#parts.payloads.keep(task, event.data.payload);
    }
    task.dueAt = 0;
    this.#delayUntil(task, event.data.dueAt ?? 0, storedAt);
  }

  /** A task that is known stands where it stood; the announcement only renews its sequence and holds its payload. */
  #carriedOn(
    task: LiveTask,
    event: EventOf<'CARRIED'>,
    { seq, storedAt }: { readonly seq: number; readonly storedAt: number },
  ): void {
    if (!task.known) this.learnFacts(task, event.data.state.facts);
    const kept = task.unsure && task.mode === Mode.waiting;
    task.seq = seq;
    task.unsure = false;
    task.payloadSeq = seq;
    // What is under way expects another sequence: it is void, or was this very event.
    if (kept || task.mode === Mode.moved || isIntent(task)) this.#parts.place.resume(task, storedAt);
  }

  #carriedAnew(task: LiveTask, event: EventOf<'CARRIED'>, storedAt: number): void {
    const { status, facts, cancelRequested, next, dueAt } = event.data.state;
    task.status = status;
    task.payloadSeq = task.seq;
    task.cancelRequested = cancelRequested;
    if (next !== undefined || event.trace !== undefined)
      task.rare = { ...task.rare, next, trace: event.trace };
    this.learnFacts(task, facts);
    if (status === 'CLAIMED' || status === 'PROCESSING') this.#parts.place.to(task, Mode.running);
    else this.#delayUntil(task, dueAt ?? 0, storedAt);
  }

  /** A task at the beginning of its life or of a round. */
  #begun(
    previous: LiveTask | undefined,
    event: TaskEvent,
    { seq, known }: { readonly seq: number; readonly known: boolean },
  ): LiveTask {
    if (previous !== undefined) this.forget(previous);
    const task = new LiveTask({
      id: readId(event.taskId),
      share: this.#parts.place.ledger.share(event.tenant, event.type),
      line: this.#parts.place.line(event.type, versionOf(event) ?? previous?.line.version ?? FIRST_VERSION),
      status: event.kind === 'REPLAYED' ? 'REPLAYED' : 'INGESTED',
      seq,
      priority: event.priority,
      round: event.round,
      attempt: event.attempt,
      known,
    });
    this.#parts.tasks.add(task);
    return task;
  }

  /** The task with what every event says; begun anew when its beginning was not seen. */
  #moved(task: LiveTask | undefined, event: TaskEvent, seq: number): LiveTask {
    if (task === undefined) return this.#begun(undefined, event, { seq, known: false });
    task.seq = seq;
    task.unsure = false;
    task.round = event.round;
    task.attempt = event.attempt;
    if (task.priority !== event.priority) this.#parts.place.reclass(task, event.priority as Priority);
    return task;
  }

  #delayUntil(task: LiveTask, dueAt: number, storedAt: number): void {
    if (dueAt <= storedAt) this.#parts.place.settle(task, storedAt);
    else this.#parts.place.delay(task, dueAt);
  }
}
