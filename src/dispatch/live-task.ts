import type { Facts, NextStep, Status } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import type { Priority } from '../domain/names.ts';
import type { PolicyOverride } from '../domain/policy.ts';
import type { TaskState } from '../domain/task.ts';
import type { TypeLine } from './type-line.ts';

/**
 * Where the core keeps a task. Legal moves:
 *
 *   waiting  -> queueing                      its turn came: an append of QUEUED is under way
 *   delayed  -> waiting | doomed              its time came
 *   doomed   -> ending                        an append of DEAD_LETTER or CANCELLED is under way
 *   queueing, ending -> moved | delayed | waiting | doomed     refused, or the outcome is unknown
 *   any      -> queued | running | delayed | waiting | doomed | gone     the log said so, or the deadline passed
 *
 * `moved`: an append was refused because of an event that the reader has yet to bring.
 */
export const Mode = {
  waiting: 0,
  delayed: 1,
  doomed: 2,
  queueing: 3,
  ending: 4,
  moved: 5,
  queued: 6,
  running: 7,
  gone: 8,
} as const;
export type Mode = (typeof Mode)[keyof typeof Mode];

/** Whether a payload rides in the QUEUED event; unknown until it has been seen. */
export const PayloadSize = { unknown: 0, small: 1, large: 2 } as const;
export type PayloadSize = (typeof PayloadSize)[keyof typeof PayloadSize];

/** What few tasks have, kept apart so that the others do not pay for it. */
export interface Rarities {
  readonly policy?: PolicyOverride | undefined;
  readonly deadlineAt?: number | undefined;
  readonly trace?: string | undefined;
  readonly next?: NextStep | undefined;
}

/**
 * A task that has not ended, as the dispatcher remembers it. Owned by DispatchCore; there may be a million, so the
 * fields are few and mostly small integers.
 */
export class LiveTask {
  readonly id: string;
  readonly tenant: string;
  readonly line: TypeLine;
  mode: Mode = Mode.gone;
  status: Status;
  /** Sequence of the last event seen: what the next append expects. */
  seq: number;
  /** Sequence that gives the place in line: that of INGESTED, or of REPLAYED for a new round. */
  order: number;
  priority: Priority;
  round: number;
  attempt: number;
  attemptsBefore = 0;
  lost = 0;
  submittedAt = 0;
  payloadSeq: number | undefined;
  /** The payload as JSON text, while it is cached. */
  payload: string | undefined;
  payloadSize: PayloadSize = PayloadSize.unknown;
  /** While delayed: not before this instant (ms since 1970). */
  dueAt = 0;
  /** While delayed: when the core wakes it by itself; later than `dueAt` when a server-side timer should do it first. */
  wakeAt = 0;
  cancelRequested = false;
  /** Whether the core's list of deadlines holds it. */
  deadlineWatched = false;
  /** False when the first event was not seen: the state must be read from the log before anything is decided. */
  known: boolean;
  rare: Rarities | undefined;

  constructor(parts: {
    id: string;
    tenant: string;
    line: TypeLine;
    status: Status;
    seq: number;
    priority: number;
    round: number;
    attempt: number;
    known: boolean;
  }) {
    this.id = parts.id;
    this.tenant = parts.tenant;
    this.line = parts.line;
    this.status = parts.status;
    this.seq = parts.seq;
    this.order = parts.seq;
    this.priority = parts.priority as Priority;
    this.round = parts.round;
    this.attempt = parts.attempt;
    this.known = parts.known;
  }

  get deadlineAt(): number | undefined {
    return this.rare?.deadlineAt;
  }

  keepFacts(facts: Facts): void {
    this.submittedAt = facts.submittedAt;
    this.attemptsBefore = facts.attemptsBefore;
    this.lost = facts.lost;
    if (facts.policy !== undefined || facts.deadlineAt !== undefined)
      this.rare = { ...this.rare, policy: facts.policy, deadlineAt: facts.deadlineAt };
  }
}

/** The domain's view of the task, for `decide`. Only for a task that is `known`. */
export function stateOf(task: LiveTask, payload: Json | undefined): TaskState {
  const { policy, deadlineAt, next } = task.rare ?? {};
  return {
    id: task.id,
    tenant: task.tenant,
    type: task.line.type,
    status: task.status,
    seq: task.seq,
    round: task.round,
    attempt: task.attempt,
    priority: task.priority,
    facts: {
      submittedAt: task.submittedAt,
      ...(policy === undefined ? {} : { policy }),
      ...(deadlineAt === undefined ? {} : { deadlineAt }),
      attemptsBefore: task.attemptsBefore,
      lost: task.lost,
    },
    holder: undefined,
    dueAt: task.dueAt === 0 ? undefined : task.dueAt,
    next,
    cancelRequested: task.cancelRequested,
    // No decision of the dispatcher records it; not worth its memory.
    fingerprint: undefined,
    payload,
    payloadSeq: task.payloadSeq,
  };
}
