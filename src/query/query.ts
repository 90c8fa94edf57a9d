import type { Actor, DeadLetterReason, EventKind, Status, TaskError } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import type { PointInTime } from './as-of.ts';
import type { LetterFilter, LetterGroupView, LetterMemory, LetterView } from './dead-letters.ts';

/** Instants are ISO 8601 strings in UTC. `null` means "not (yet)". */
export interface TaskView {
  readonly id: string;
  readonly tenant: string;
  readonly type: string;
  readonly status: Status;
  readonly priority: number;
  readonly round: number;
  readonly attempt: number;
  readonly cancelRequested: boolean;
  /** The worker incarnation of the last claimed attempt. */
  readonly worker: string | null;
  readonly payload: Json;
  readonly result: Json;
  /** Of the last failed attempt. */
  readonly error: TaskError | null;
  readonly deadLetterReason: DeadLetterReason | null;
  /** Why a REJECTED submission was refused. */
  readonly rejections:
    | readonly { readonly code: string; readonly field?: string; readonly message: string }[]
    | null;
  readonly idempotencyKey: string | null;
  /** The schedule that made the task, and the slot it was made for; no slot when somebody ran the schedule by hand. */
  readonly schedule: string | null;
  readonly slotAt: string | null;
  readonly submittedAt: string;
  readonly runAt: string | null;
  /** When a retry or delayed start is due. */
  readonly dueAt: string | null;
  readonly deadlineAt: string | null;
  readonly claimedAt: string | null;
  readonly startedAt: string | null;
  readonly finishedAt: string | null;
  readonly updatedAt: string;
  /** Sequence of the task's last event that is reflected here. */
  readonly seq: number;
}

export interface EventView {
  readonly seq: number;
  readonly id: string;
  readonly kind: EventKind;
  readonly from: Status | null;
  readonly round: number;
  readonly attempt: number;
  /** The actor's clock. */
  readonly at: string;
  /** The log's clock. */
  readonly storedAt: string;
  readonly actor: Actor;
  readonly data: Json;
}

export interface QueueView {
  readonly tenant: string;
  readonly type: string;
  readonly priority: number;
  /** Tasks by status; a status with none may be absent. */
  readonly counts: Readonly<Partial<Record<Status, number>>>;
}

export interface TaskFilter {
  /** Undefined: all tenants (operators only; the HTTP layer decides). */
  readonly tenant?: string | undefined;
  readonly type?: string | undefined;
  readonly status?: readonly Status[] | undefined;
  readonly worker?: string | undefined;
  readonly submittedFrom?: number | undefined;
  readonly submittedTo?: number | undefined;
  /** A log sequence; inclusive. */
  readonly submittedUpToSeq?: number | undefined;
}

export interface Page {
  readonly limit: number;
  readonly cursor?: string | undefined;
}

/** `position`: the log sequence that the answer reflects. */
export interface Answer<T> {
  readonly position: number;
  readonly value: T;
}
export interface Paged<T> {
  readonly items: readonly T[];
  readonly nextCursor: string | null;
}

/** Reads from the read models. Every method throws `read_model_unavailable` when Postgres cannot be reached. */
export interface Query {
  task(tenant: string | undefined, taskId: string): Promise<Answer<TaskView | undefined>>;
  /** As it was then. Throws `point_not_kept`. */
  taskAt(
    tenant: string | undefined,
    taskId: string,
    point: PointInTime,
  ): Promise<Answer<TaskView | undefined>>;
  /** Newest first. Throws `cursor_invalid`. */
  tasks(filter: TaskFilter, page: Page): Promise<Answer<Paged<TaskView>>>;
  /** How many tasks match, but no more than `atMost`. */
  countTasks(filter: TaskFilter, atMost: number): Promise<Answer<number>>;
  /** A task's transitions, oldest first (CARRIED is not one). */
  taskEvents(tenant: string | undefined, taskId: string, page: Page): Promise<Answer<Paged<EventView>>>;
  queues(filter: {
    readonly tenant?: string | undefined;
    readonly type?: string | undefined;
  }): Promise<Answer<readonly QueueView[]>>;
  /** As they were then. Throws `point_not_kept`, `point_too_far`. */
  queuesAt(
    filter: { readonly tenant?: string | undefined; readonly type?: string | undefined },
    point: PointInTime,
  ): Promise<Answer<readonly QueueView[]>>;
  /** Newest death first. Throws `cursor_invalid`. */
  deadLetters(filter: LetterFilter, page: Page): Promise<Answer<Paged<LetterView>>>;
  deadLetter(tenant: string | undefined, taskId: string): Promise<Answer<LetterView | undefined>>;
  /** The group that died last first. `open`: only groups with letters that wait for somebody. */
  deadLetterGroups(
    filter: Pick<LetterFilter, 'tenant' | 'type' | 'fingerprint'> & { readonly open: boolean },
    page: Page,
  ): Promise<Answer<Paged<LetterGroupView>>>;
  /** A stretch of the letters in the order of their deaths: those after one sequence, up to another. */
  deadLettersBetween(
    filter: LetterFilter,
    stretch: { readonly after: number; readonly upTo: number; readonly limit: number },
  ): Promise<readonly LetterView[]>;
  /** `most`: when reached, there may be more. */
  countDeadLetters(filter: LetterFilter, most: number): Promise<number>;
  /** What is known of a dead letter besides its view. */
  deadLetterMemory(tenant: string, taskId: string): Promise<LetterMemory | undefined>;
  position(): Promise<number>;
  /** Resolves once the read models reflect `seq`; throws `position_not_reached` after `timeoutMs`. */
  waitFor(seq: number, timeoutMs: number): Promise<void>;
}
