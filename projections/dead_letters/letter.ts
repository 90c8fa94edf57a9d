import type {
  DeadLetterReason,
  EventOf,
  Facts,
  Recorded,
  TaskError,
  TaskEvent,
} from '../../src/domain/events.ts';
import { errorShape } from '../../src/domain/fingerprint.ts';

/**
 * A task that has died. Legal moves of its state:
 *
 *   (none) -> open -> replayed -> open (it died again) | discarded (never left)
 */
export interface Letter {
  readonly type: string;
  readonly state: 'open' | 'replayed' | 'discarded';
  readonly reason: DeadLetterReason;
  readonly fingerprint: string;
  /** Null when no attempt of the round has failed. */
  readonly error: TaskError | null;
  readonly worker: string | null;
  readonly workerVersion: string | null;
  readonly priority: number;
  /** Over all rounds. */
  readonly attempt: number;
  readonly round: number;
  /** In the round that died last. Instants are the actors', in ms since 1970, as HISTORY keeps no others. */
  readonly firstFailedAt: number | null;
  readonly firstDeadAt: number;
  readonly deadAt: number;
  /** Sequence of the last DEAD_LETTER. */
  readonly seq: number;
  readonly settledAt: number | null;
  readonly settledBy: string | null;
  readonly note: string | null;
  readonly facts: Facts | null;
}

/** Why the last attempt of a task failed that may die of it. */
export interface Failure {
  readonly error: TaskError;
  readonly worker: string;
  readonly workerVersion: string | null;
  readonly round: number;
  readonly firstFailedAt: number;
}

/** What the read model knows of one task. */
export interface Known {
  readonly failure: Failure | null;
  readonly letter: Letter | null;
}

export const UNKNOWN: Known = { failure: null, letter: null };

/** Whether an event can change what is known. A first attempt that completes is nearly every task, and leaves nothing behind. */
export function concerns({ kind, attempt }: TaskEvent): boolean {
  switch (kind) {
    case 'FAILED':
    case 'RETRY_CLAIMED':
    case 'DEAD_LETTER':
    case 'REPLAYED':
    case 'DISCARDED':
      return true;
    case 'COMPLETED':
      return attempt > 1;
    case 'CANCELLED':
      return attempt > 0;
    case 'INGESTED':
    case 'REJECTED':
    case 'QUEUED':
    case 'CLAIMED':
    case 'PROCESSING':
    case 'CANCEL_REQUESTED':
    case 'CARRIED':
    case 'RESCHEDULED':
      return false;
    default:
      kind satisfies never;
      return false;
  }
}

/** Folds one event that `concerns`. */
export function record(known: Known, recorded: Recorded): Known {
  const { event } = recorded;
  switch (event.kind) {
    case 'FAILED': {
      const { error, workerVersion = null } = event.data;
      return { ...known, failure: failure(known, event, { error, worker: event.actor.id, workerVersion }) };
    }
    case 'RETRY_CLAIMED': {
      const { lostWorker: worker, reason } = event.data;
      return {
        ...known,
        failure: failure(known, event, { error: lost(reason), worker, workerVersion: null }),
      };
    }
    case 'DEAD_LETTER':
      return { failure: null, letter: died(known, recorded as Recorded<EventOf<'DEAD_LETTER'>>) };
    case 'REPLAYED':
      return { failure: null, letter: settled(known.letter, 'replayed', event, event.data.note ?? null) };
    case 'DISCARDED':
      return { failure: null, letter: settled(known.letter, 'discarded', event, event.data.reason) };
    default:
      return { ...known, failure: null };
  }
}

const lost = (reason: string): TaskError => ({
  name: 'LeaseLost',
  message: `The attempt was lost: ${reason}`,
});

function failure(
  { failure: before }: Known,
  event: TaskEvent,
  cause: Pick<Failure, 'error' | 'worker' | 'workerVersion'>,
): Failure {
  const sameRound = before !== null && before.round === event.round;
  return { ...cause, round: event.round, firstFailedAt: sameRound ? before.firstFailedAt : event.at };
}

function died(
  { failure: last, letter: before }: Known,
  { event, seq }: Recorded<EventOf<'DEAD_LETTER'>>,
): Letter {
  const cause = last?.round === event.round ? last : null;
  const { reason, facts = null } = event.data;
  return {
    type: event.type,
    state: 'open',
    reason,
    fingerprint: errorShape(causeOfDeath(cause?.error ?? null, reason)).fingerprint,
    error: cause?.error ?? null,
    worker: cause?.worker ?? null,
    workerVersion: cause?.workerVersion ?? null,
    priority: event.priority,
    attempt: event.attempt,
    round: event.round,
    firstFailedAt: cause?.firstFailedAt ?? null,
    firstDeadAt: before?.firstDeadAt ?? event.at,
    deadAt: event.at,
    seq,
    settledAt: null,
    settledBy: null,
    note: null,
    facts,
  };
}

/** What a dead letter is grouped by: its error, or its reason when nothing failed. */
export const causeOfDeath = (
  error: TaskError | null,
  reason: DeadLetterReason,
): Pick<TaskError, 'name' | 'code' | 'message'> =>
  error ?? {
    name: reason === 'deadline' ? 'DeadlinePassed' : 'NoAttempt',
    message: reason === 'deadline' ? 'The deadline passed before an attempt failed' : `Ended as ${reason}`,
  };

const settled = (
  letter: Letter | null,
  state: 'replayed' | 'discarded',
  { at, actor }: TaskEvent,
  note: string | null,
): Letter | null =>
  letter === null ? null : { ...letter, state, settledAt: at, settledBy: `${actor.kind} ${actor.id}`, note };
