import type { EventOf, LostReason, Recorded } from '../domain/events.ts';
import { RUNNING, type TaskState } from '../domain/task.ts';
import type { WorkerEntry } from './worker-entry.ts';

/** What to do with a delivery that may not be the first, once the task's state is known. */
export type Verdict =
  /** It is still waiting: claim it from this state. */
  | { readonly kind: 'claim'; readonly state: TaskState }
  /** It is this worker's own running attempt. */
  | { readonly kind: 'mine' }
  /** Its holder seems alive: hand the delivery back and look again later. */
  | { readonly kind: 'wait' }
  /** Its holder is gone: record that the attempt is lost. */
  | { readonly kind: 'lose'; readonly state: TaskState; readonly reason: LostReason }
  /** The task has moved on: this delivery only needs its ack. */
  | { readonly kind: 'settled' };

/** What is known of the worker that holds the attempt. */
export type Holder =
  | { readonly kind: 'self'; readonly active: boolean }
  | { readonly kind: 'other'; readonly standing: Standing };

/** `reports`: alive and says that it runs this attempt. `silent`: alive, and does not say so. */
export type Standing = 'reports' | 'silent' | 'gone';

/** Whether the attempt of this QUEUED event is the one that runs, and who runs it; undefined when none does. */
export function runningHolder(
  state: TaskState | undefined,
  queued: Recorded<EventOf<'QUEUED'>>,
): string | undefined {
  if (state === undefined || !RUNNING.has(state.status)) return undefined;
  const { attempt, round } = queued.event;
  return state.round === round && state.attempt === attempt + 1 ? state.holder : undefined;
}

/**
 * A redelivery is a suspicion, not a proof. A wrong verdict wastes an attempt, never correctness: the fence refuses
 * whoever lost.
 */
export function judge(
  state: TaskState | undefined,
  queued: Recorded<EventOf<'QUEUED'>>,
  holder: Holder | undefined,
): Verdict {
  if (state === undefined) return { kind: 'settled' };
  const { attempt, round } = queued.event;
  if (state.status === 'QUEUED' && state.round === round && state.attempt === attempt)
    return { kind: 'claim', state };
  if (holder === undefined || runningHolder(state, queued) === undefined) return { kind: 'settled' };
  if (holder.kind === 'self')
    return holder.active ? { kind: 'mine' } : { kind: 'lose', state, reason: 'lease_expired' };
  switch (holder.standing) {
    case 'reports':
      return { kind: 'wait' };
    case 'silent':
      return { kind: 'lose', state, reason: 'lease_expired' };
    case 'gone':
      return { kind: 'lose', state, reason: 'worker_gone' };
    default:
      return holder.standing satisfies never;
  }
}

interface Sighting {
  readonly revision: number;
  /** Monotonic ms: when this revision was first seen. */
  readonly since: number;
}

/** An entry that was not written again for so many of its own periods belongs to a dead worker. */
const DEAD_AFTER_PERIODS = 3;
const MAX_SIGHTINGS = 1_000;

/**
 * Remembers what the registry said of other workers. Whether one is alive is told by its entry changing, on this
 * worker's own clock: clocks of two hosts are never compared.
 */
export class Sightings {
  readonly #entries = new Map<string, Sighting>();
  /** Attempts that a live holder did not report, seen once: its entry may have been written just before it claimed. */
  readonly #unreported = new Set<string>();

  /** `found` is the registry's entry of the worker, undefined when there is none. */
  standing(
    workerId: string,
    attemptKey: string,
    found: { readonly entry: WorkerEntry; readonly revision: number } | undefined,
    now: number,
  ): Standing {
    if (found === undefined) {
      this.#entries.delete(workerId);
      return 'gone';
    }
    const { entry, revision } = found;
    const seen = this.#entries.get(workerId);
    if (seen?.revision !== revision) this.#remember(workerId, { revision, since: now });
    else if (now - seen.since > DEAD_AFTER_PERIODS * entry.everyMs) return 'gone';
    if (entry.active.some(({ task, attempt }) => `${task}#${attempt}` === attemptKey)) return 'reports';
    if (this.#unreported.delete(attemptKey)) return 'silent';
    if (this.#unreported.size >= MAX_SIGHTINGS) this.#unreported.clear();
    this.#unreported.add(attemptKey);
    return 'reports';
  }

  #remember(workerId: string, sighting: Sighting): void {
    if (this.#entries.size >= MAX_SIGHTINGS) this.#entries.clear();
    this.#entries.set(workerId, sighting);
  }
}
