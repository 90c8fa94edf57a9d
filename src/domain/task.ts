import type {
  DeadLetterReason,
  EventKind,
  EventOf,
  Facts,
  NextStep,
  Recorded,
  Status,
  TaskEvent,
} from './events.ts';
import type { Json } from './json.ts';
import type { Priority } from './names.ts';
import { type Policy, resolvePolicy } from './policy.ts';

/**
 * A task's state, folded from its events. Legal moves:
 *
 *   (none) -> INGESTED | REJECTED
 *   INGESTED, FAILED, RETRY_CLAIMED, REPLAYED -> QUEUED         waiting; FAILED and RETRY_CLAIMED with retries left,
 *                                                               RETRY_CLAIMED without when its last loss is pardoned
 *   QUEUED -> QUEUED                                            announced again
 *   QUEUED -> CLAIMED -> PROCESSING -> COMPLETED | FAILED
 *   CLAIMED, PROCESSING -> RETRY_CLAIMED                        the lease was lost
 *   FAILED, RETRY_CLAIMED -> DEAD_LETTER                        no retry left, or not retryable
 *   INGESTED, QUEUED, FAILED, RETRY_CLAIMED, REPLAYED -> DEAD_LETTER   past the deadline
 *   waiting -> CANCELLED;  CLAIMED, PROCESSING -> (cancel requested) -> CANCELLED
 *   waiting but QUEUED -> (rescheduled)                         another priority or due time, the same status
 *   INGESTED, debounced -> (rescheduled)                        another payload as well
 *   DEAD_LETTER, CANCELLED -> REPLAYED                          a new round; never once it is discarded
 */
export interface TaskState {
  readonly id: string;
  readonly tenant: string;
  readonly type: string;
  readonly status: Status;
  /** Sequence of the task's last event: what the next append expects. */
  readonly seq: number;
  readonly round: number;
  /** Attempts claimed over all rounds. */
  readonly attempt: number;
  readonly priority: Priority;
  readonly facts: Facts;
  /** The worker incarnation of the running attempt; set while CLAIMED or PROCESSING. */
  readonly holder: string | undefined;
  /** Not to be queued before this instant (ms since 1970, the server's clock for retries). */
  readonly dueAt: number | undefined;
  /** What follows a FAILED or RETRY_CLAIMED. */
  readonly next: NextStep | undefined;
  readonly cancelRequested: boolean;
  /** A dead letter that nobody will replay. */
  readonly discarded: boolean;
  readonly fingerprint: string | undefined;
  /** Known when the event at hand carried it. */
  readonly payload: Json | undefined;
  /** Sequence of the event that holds the payload. */
  readonly payloadSeq: number | undefined;
}

export const WAITING: ReadonlySet<Status> = new Set([
  'INGESTED',
  'QUEUED',
  'FAILED',
  'RETRY_CLAIMED',
  'REPLAYED',
]);
export const RUNNING: ReadonlySet<Status> = new Set(['CLAIMED', 'PROCESSING']);
export const TERMINAL: ReadonlySet<Status> = new Set(['COMPLETED', 'DEAD_LETTER', 'CANCELLED', 'REJECTED']);

export const policyOf = (state: TaskState): Policy => resolvePolicy(state.facts.policy);
/** Attempts claimed in the current round. */
export const attemptsInRound = (state: TaskState): number => state.attempt - state.facts.attemptsBefore;
export const retriesUsed = (state: TaskState): number => Math.max(0, attemptsInRound(state) - 1);

/**
 * Folds one event. With no state, the event must be one that a task can be known from (`isBeginning`). Throws
 * IllegalHistory when the event is another task's, out of order, or leaves a status that the task does not have; that the
 * move itself is legal was `decide`'s part.
 */
export function evolve(state: TaskState | undefined, recorded: Recorded): TaskState {
  const { event, seq } = recorded;
  if (state === undefined) return begin(recorded);
  if (event.taskId !== state.id) throw new IllegalHistory(`event of ${event.taskId} folded into ${state.id}`);
  if (seq <= state.seq) throw new IllegalHistory(`sequence ${seq} does not follow ${state.seq}`);
  if (event.from !== state.status) {
    throw new IllegalHistory(
      `${event.kind} leaves ${event.from ?? 'nothing'}, but the task is ${state.status}`,
    );
  }
  const moved = copyOf(state, recorded);
  switch (event.kind) {
    case 'QUEUED':
      moved.status = 'QUEUED';
      moved.facts = event.data.facts;
      moved.holder = undefined;
      moved.dueAt = undefined;
      moved.next = undefined;
      moved.fingerprint = event.data.fingerprint ?? state.fingerprint;
      takePayload(moved, event, seq);
      return moved;
    case 'CLAIMED':
      moved.status = 'CLAIMED';
      moved.holder = event.actor.id;
      return moved;
    case 'PROCESSING':
      moved.status = 'PROCESSING';
      return moved;
    case 'COMPLETED':
      moved.status = 'COMPLETED';
      moved.holder = undefined;
      return moved;
    case 'FAILED':
    case 'RETRY_CLAIMED':
      moved.status = event.kind;
      moved.holder = undefined;
      moved.next = event.data.next;
      moved.dueAt = dueAfter(event.data.next, recorded.storedAt);
      if (event.kind === 'RETRY_CLAIMED') moved.facts = { ...state.facts, lost: state.facts.lost + 1 };
      return moved;
    case 'DEAD_LETTER':
      moved.status = 'DEAD_LETTER';
      moved.dueAt = undefined;
      moved.next = undefined;
      return moved;
    case 'CANCEL_REQUESTED':
      moved.cancelRequested = true;
      return moved;
    case 'CANCELLED':
      moved.status = 'CANCELLED';
      moved.holder = undefined;
      moved.dueAt = undefined;
      moved.next = undefined;
      return moved;
    case 'REPLAYED':
      return replayed(moved, recorded as Recorded<EventOf<'REPLAYED'>>);
    case 'CARRIED':
      return carried(recorded as Recorded<EventOf<'CARRIED'>>);
    case 'DISCARDED':
      moved.discarded = true;
      return moved;
    case 'RESCHEDULED':
      return rescheduled(moved, event, seq);
    case 'INGESTED':
    case 'REJECTED':
      throw new IllegalHistory(`${event.kind} is not the first event of ${event.taskId}`);
    default:
      return event satisfies never;
  }
}

/** The state after a whole history; undefined for none. */
export const fold = (events: Iterable<Recorded>): TaskState | undefined => {
  let state: TaskState | undefined;
  for (const recorded of events) state = evolve(state, recorded);
  return state;
};

export class IllegalHistory extends Error {
  override readonly name = 'IllegalHistory';
}

/** A state that is still being made. */
type Draft = { -readonly [K in keyof TaskState]: TaskState[K] };

/** Written out, because a state is made for every event that anybody reads, and spreads cost ten times as much. */
const copyOf = (state: TaskState, { event, seq }: Recorded): Draft => ({
  id: state.id,
  tenant: state.tenant,
  type: state.type,
  status: state.status,
  seq,
  round: event.round,
  attempt: event.attempt,
  priority: event.priority as Priority,
  facts: state.facts,
  holder: state.holder,
  dueAt: state.dueAt,
  next: state.next,
  cancelRequested: state.cancelRequested,
  discarded: state.discarded,
  fingerprint: state.fingerprint,
  payload: state.payload,
  payloadSeq: state.payloadSeq,
});

/** What an event says of itself that a task is known from. */
const draftOf = ({ event, seq }: Recorded, status: Status, facts: Facts): Draft => ({
  id: event.taskId,
  tenant: event.tenant,
  type: event.type,
  status,
  seq,
  round: event.round,
  attempt: event.attempt,
  priority: event.priority as Priority,
  facts,
  holder: undefined,
  dueAt: undefined,
  next: undefined,
  cancelRequested: false,
  discarded: false,
  fingerprint: undefined,
  payload: undefined,
  payloadSeq: undefined,
});

function begin(recorded: Recorded): TaskState {
  const { event, seq } = recorded;
  switch (event.kind) {
    case 'INGESTED': {
      const { payload, fingerprint, policy, runAt, deadlineAt, version } = event.data;
      const { orderingKey, concurrencyKey, debounce } = event.data;
      const facts: Facts = {
        submittedAt: event.at,
        attemptsBefore: 0,
        lost: 0,
        ...(policy === undefined ? {} : { policy }),
        ...(deadlineAt === undefined ? {} : { deadlineAt }),
        ...(version === undefined ? {} : { version }),
        ...(orderingKey === undefined ? {} : { orderingKey, orderSeq: seq }),
        ...(concurrencyKey === undefined ? {} : { concurrencyKey }),
        ...(debounce === undefined ? {} : { debounce: { until: debounce.until, at: debounce.at } }),
      };
      const ingested = draftOf(recorded, 'INGESTED', facts);
      ingested.fingerprint = fingerprint;
      ingested.dueAt = runAt;
      ingested.payload = payload;
      ingested.payloadSeq = seq;
      return ingested;
    }
    case 'REJECTED':
      return draftOf(recorded, 'REJECTED', { submittedAt: event.at, attemptsBefore: 0, lost: 0 });
    case 'QUEUED': {
      const queued = draftOf(recorded, 'QUEUED', event.data.facts);
      queued.fingerprint = event.data.fingerprint;
      takePayload(queued, event, seq);
      return queued;
    }
    case 'CARRIED':
      return carried(recorded as Recorded<EventOf<'CARRIED'>>);
    case 'REPLAYED': {
      const { carried: kept } = event.data;
      if (kept === undefined) break;
      const before = draftOf(recorded, 'DEAD_LETTER', kept.facts);
      before.fingerprint = kept.fingerprint;
      return replayed(before, recorded as Recorded<EventOf<'REPLAYED'>>);
    }
    case 'DISCARDED': {
      // Nothing follows it, so that its facts do not matter.
      const facts = { submittedAt: event.at, attemptsBefore: 0, lost: 0 };
      const discarded = draftOf(recorded, 'DEAD_LETTER', facts);
      discarded.discarded = true;
      return discarded;
    }
    default:
      break;
  }
  throw new IllegalHistory(`a task cannot be known from ${event.kind} alone`);
}

/** Whether a task can be known from this event alone: its first, or one that carries the facts. */
export const isBeginning = (event: TaskEvent): boolean =>
  BEGINNINGS.has(event.kind) || (event.kind === 'REPLAYED' && event.data.carried !== undefined);
const BEGINNINGS: ReadonlySet<EventKind> = new Set([
  'INGESTED',
  'REJECTED',
  'QUEUED',
  'CARRIED',
  'DISCARDED',
]);

/** The payload that an event holds itself. `null` is a payload. */
export function payloadIn(event: TaskEvent): Json | undefined {
  switch (event.kind) {
    case 'INGESTED':
    case 'QUEUED':
    case 'RESCHEDULED':
      return event.data.payload;
    case 'REPLAYED':
      return event.data.payload === undefined ? event.data.carried?.payload : event.data.payload;
    case 'CARRIED':
      return event.data.state.payload;
    case 'REJECTED':
    case 'CLAIMED':
    case 'PROCESSING':
    case 'COMPLETED':
    case 'FAILED':
    case 'RETRY_CLAIMED':
    case 'DEAD_LETTER':
    case 'DISCARDED':
    case 'CANCEL_REQUESTED':
    case 'CANCELLED':
      return undefined;
    default:
      return event satisfies never;
  }
}

/** The newest event that holds the payload is the one to point at: it ages out last. */
function takePayload(draft: Draft, { data }: EventOf<'QUEUED'>, seq: number): void {
  if (data.payload !== undefined) {
    draft.payload = data.payload;
    draft.payloadSeq = seq;
  } else if (data.payloadSeq !== undefined) draft.payloadSeq = data.payloadSeq;
}

function rescheduled(moved: Draft, { data }: EventOf<'RESCHEDULED'>, seq: number): TaskState {
  moved.dueAt = data.dueAt ?? undefined;
  if (data.payload !== undefined) {
    moved.payload = data.payload;
    moved.payloadSeq = seq;
  }
  const { debounce } = moved.facts;
  if (debounce !== undefined && data.debouncedAt !== undefined)
    moved.facts = { ...moved.facts, debounce: { ...debounce, at: data.debouncedAt } };
  return moved;
}

function replayed(moved: TaskState, { event, seq }: Recorded<EventOf<'REPLAYED'>>): TaskState {
  const { policy: _policy, deadlineAt: _deadlineAt, pardoned: _pardoned, ...others } = moved.facts;
  const { debounce: _debounce, ...kept } = others;
  const policy = event.data.policy ?? moved.facts.policy;
  const payload = payloadIn(event);
  return {
    ...moved,
    ...(payload === undefined ? {} : { payload, payloadSeq: seq }),
    status: 'REPLAYED',
    // A deadline belongs to the submission: a replay is a new wish and starts without one.
    facts: {
      ...kept,
      ...(policy === undefined ? {} : { policy }),
      ...(kept.orderingKey === undefined ? {} : { orderSeq: seq }),
      attemptsBefore: moved.attempt,
      lost: 0,
    },
    holder: undefined,
    dueAt: undefined,
    next: undefined,
    cancelRequested: false,
  };
}

function carried(recorded: Recorded<EventOf<'CARRIED'>>): TaskState {
  const { state } = recorded.event.data;
  const draft = draftOf(recorded, state.status, state.facts);
  draft.holder = state.holder;
  draft.dueAt = state.dueAt;
  draft.next = state.next;
  draft.cancelRequested = state.cancelRequested;
  draft.fingerprint = state.fingerprint;
  draft.payload = state.payload;
  draft.payloadSeq = recorded.seq;
  return draft;
}

const dueAfter = (next: NextStep, storedAt: number): number | undefined =>
  'retryInMs' in next ? storedAt + next.retryInMs : undefined;

/** In a round: a task that outlives so many outages only by pardon is itself what kills its workers. */
const MAX_PARDONS = 3;

/** Whether the task is at its end because its last attempt was lost: that may be the fleet's fault. */
export const mayBePardoned = ({
  status,
  next,
  facts,
}: Pick<TaskState, 'status' | 'next' | 'facts'>): boolean =>
  status === 'RETRY_CLAIMED' && next !== undefined && 'final' in next && (facts.pardoned ?? 0) < MAX_PARDONS;

/** Why the task must end in the dead-letter queue by now, or undefined while it need not. `now` in ms since 1970. */
export function deadLetterReason(state: TaskState, now: number): DeadLetterReason | undefined {
  if (state.next !== undefined && 'final' in state.next) return state.next.final;
  if (WAITING.has(state.status) && state.facts.deadlineAt !== undefined && now >= state.facts.deadlineAt)
    return 'deadline';
  return undefined;
}
