import {
  type Facts,
  FIRST_VERSION,
  type Keys,
  type NextStep,
  STATUSES,
  type Status,
} from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import type { Priority } from '../domain/names.ts';
import type { PolicyOverride } from '../domain/policy.ts';
import type { TaskState } from '../domain/task.ts';
import { writeId } from './id-bits.ts';
import type { Share } from './share.ts';
import type { TypeLine } from './type-line.ts';

/**
 * Where the core keeps a task. Legal moves:
 *
 *   waiting  -> queueing                      its turn came: an append of QUEUED is under way
 *   delayed  -> waiting | doomed              its time came
 *   doomed   -> ending                        an append of DEAD_LETTER or CANCELLED is under way
 *   waiting, delayed -> carrying              an append of CARRIED is under way
 *   queueing, ending, carrying -> moved | delayed | waiting | doomed     refused, or the outcome is unknown
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
  carrying: 5,
  moved: 6,
  queued: 7,
  running: 8,
  gone: 9,
} as const;
export type Mode = (typeof Mode)[keyof typeof Mode];

/** Whether an append is under way for it. */
export const isIntent = ({ mode }: { readonly mode: Mode }): boolean =>
  mode === Mode.queueing || mode === Mode.ending || mode === Mode.carrying;

/** Where a task waits: in its lane, behind its ordering key, or behind its concurrency key. */
export const Spot = { none: 0, lane: 1, ordered: 2, held: 3 } as const;
export type Spot = (typeof Spot)[keyof typeof Spot];

/** Whether a payload rides in the QUEUED event; unknown until it has been seen. */
export const PayloadSize = { unknown: 0, small: 1, large: 2 } as const;
export type PayloadSize = (typeof PayloadSize)[keyof typeof PayloadSize];

/** What few tasks have, kept apart so that the others do not pay for it. */
export interface Rarities {
  readonly policy?: PolicyOverride | undefined;
  readonly deadlineAt?: number | undefined;
  readonly trace?: string | undefined;
  readonly next?: NextStep | undefined;
  /** 1 when absent. */
  readonly round?: number | undefined;
  /** 0 when absent; so is `lost`. */
  readonly attemptsBefore?: number | undefined;
  readonly lost?: number | undefined;
  readonly orderingKey?: string | undefined;
  readonly concurrencyKey?: string | undefined;
  readonly pardoned?: number | undefined;
}

const CANCEL_REQUESTED = 1;
const DEADLINE_WATCHED = 2;
const KNOWN = 4;
const PROMISED = 8;
const HOLDS = 16;
const HOLDS_KEY = 32;
const ENROLLED = 64;
const KEYED = 128;
const FORGIVEN = 256;
const UNSURE = 512;
/** Small numbers that share the word of the flags: shift and mask of each. */
const SPOT = { at: 10, mask: 3 } as const;
const PAYLOAD_SIZE = { at: 12, mask: 3 } as const;
const PRIORITY = { at: 14, mask: 7 } as const;
const MODE = { at: 17, mask: 15 } as const;
const STATUS = { at: 21, mask: 15 } as const;
type Field = { readonly at: number; readonly mask: number };

const STATUS_CODES = Object.fromEntries(STATUSES.map((status, code) => [status, code])) as Readonly<
  Record<Status, number>
>;

/** An instant in two small integers, as `| 0` tells V8: it boxes a larger number, in 16 bytes of its own. */
const HIGH = 2 ** 30;

/**
 * A task that has not ended, as the dispatcher remembers it. Owned by DispatchCore. There may be a million: under 200
 * bytes each, its places in the index and in line included, when it has no payload cached and nothing rare. That is why
 * it has few fields, and none that V8 keeps apart from the object (while sequences are below 2^31).
 */
export class LiveTask {
  readonly id0: number;
  readonly id1: number;
  readonly id2: number;
  readonly id3: number;
  readonly share: Share;
  line: TypeLine;
  /** Sequence of the last event seen: what the next append expects. */
  seq: number;
  /** Sequence that gives the place in line: that of INGESTED, or of REPLAYED for a new round. */
  order: number;
  attempt: number;
  payloadSeq: number | undefined;
  /** The payload as JSON text, while it is cached. */
  payload: string | undefined;
  rare: Rarities | undefined;
  #submittedHigh = 0;
  #submittedLow = 0;
  #dueHigh = 0;
  #dueLow = 0;
  #bits = Mode.gone << MODE.at;

  constructor(parts: {
    /** See id-bits.ts. */
    id: readonly [number, number, number, number];
    share: Share;
    line: TypeLine;
    status: Status;
    seq: number;
    priority: number;
    round: number;
    attempt: number;
    known: boolean;
  }) {
    this.id0 = parts.id[0];
    this.id1 = parts.id[1];
    this.id2 = parts.id[2];
    this.id3 = parts.id[3];
    this.share = parts.share;
    this.line = parts.line;
    this.seq = parts.seq;
    this.order = parts.seq;
    this.attempt = parts.attempt;
    this.payloadSeq = undefined;
    this.payload = undefined;
    this.rare = undefined;
    this.status = parts.status;
    this.priority = parts.priority as Priority;
    this.round = parts.round;
    this.known = parts.known;
  }

  /** Made anew at every call. */
  get id(): string {
    return writeId(this);
  }

  get mode(): Mode {
    return fieldOf(this.#bits, MODE) as Mode;
  }

  set mode(mode: Mode) {
    this.#bits = withField(this.#bits, MODE, mode);
  }

  get status(): Status {
    return STATUSES[fieldOf(this.#bits, STATUS)] as Status;
  }

  set status(status: Status) {
    this.#bits = withField(this.#bits, STATUS, STATUS_CODES[status]);
  }

  get priority(): Priority {
    return fieldOf(this.#bits, PRIORITY) as Priority;
  }

  set priority(priority: Priority) {
    this.#bits = withField(this.#bits, PRIORITY, priority);
  }

  get payloadSize(): PayloadSize {
    return fieldOf(this.#bits, PAYLOAD_SIZE) as PayloadSize;
  }

  set payloadSize(size: PayloadSize) {
    this.#bits = withField(this.#bits, PAYLOAD_SIZE, size);
  }

  /** Ms since 1970. */
  get submittedAt(): number {
    return this.#submittedHigh * HIGH + this.#submittedLow;
  }

  set submittedAt(at: number) {
    this.#submittedHigh = Math.floor(at / HIGH) | 0;
    this.#submittedLow = (at % HIGH) | 0;
  }

  /** While delayed: not before this instant (ms since 1970). */
  get dueAt(): number {
    return this.#dueHigh * HIGH + this.#dueLow;
  }

  set dueAt(at: number) {
    this.#dueHigh = Math.floor(at / HIGH) | 0;
    this.#dueLow = (at % HIGH) | 0;
  }

  /** One string for all tasks of a tenant. */
  get tenant(): string {
    return this.share.tenant.name;
  }

  get deadlineAt(): number | undefined {
    return this.rare?.deadlineAt;
  }

  get round(): number {
    return this.rare?.round ?? 1;
  }

  set round(round: number) {
    if (round !== this.round) this.rare = { ...this.rare, round };
  }

  get lost(): number {
    return this.rare?.lost ?? 0;
  }

  set lost(lost: number) {
    if (lost !== this.lost) this.rare = { ...this.rare, lost };
  }

  get cancelRequested(): boolean {
    return (this.#bits & CANCEL_REQUESTED) !== 0;
  }

  set cancelRequested(on: boolean) {
    this.#bits = withFlag(this.#bits, CANCEL_REQUESTED, on);
  }

  /** Whether the core's list of deadlines holds it. */
  get deadlineWatched(): boolean {
    return (this.#bits & DEADLINE_WATCHED) !== 0;
  }

  set deadlineWatched(on: boolean) {
    this.#bits = withFlag(this.#bits, DEADLINE_WATCHED, on);
  }

  /** False when the first event was not seen: the state must be read from the log before anything is decided. */
  get known(): boolean {
    return (this.#bits & KNOWN) !== 0;
  }

  set known(on: boolean) {
    this.#bits = withFlag(this.#bits, KNOWN, on);
  }

  /** Whether it holds a slot of its type, its tenant and its share (see Ledger). */
  get holds(): boolean {
    return (this.#bits & HOLDS) !== 0;
  }

  set holds(on: boolean) {
    this.#bits = withFlag(this.#bits, HOLDS, on);
  }

  /** Whether it is to take a token of its tenant and its share when the log says that it was queued (see Ledger). */
  get promised(): boolean {
    return (this.#bits & PROMISED) !== 0;
  }

  set promised(on: boolean) {
    this.#bits = withFlag(this.#bits, PROMISED, on);
  }

  /** Whether an append of QUEUED may have been stored that nobody has heard of. Until the log says more, it keeps its slot. */
  get unsure(): boolean {
    return (this.#bits & UNSURE) !== 0;
  }

  set unsure(on: boolean) {
    this.#bits = withFlag(this.#bits, UNSURE, on);
  }

  /** Whether it counts against the limit of its concurrency key. */
  get holdsKey(): boolean {
    return (this.#bits & HOLDS_KEY) !== 0;
  }

  set holdsKey(on: boolean) {
    this.#bits = withFlag(this.#bits, HOLDS_KEY, on);
  }

  /** Whether it has a place among those of its ordering key. */
  get enrolled(): boolean {
    return (this.#bits & ENROLLED) !== 0;
  }

  set enrolled(on: boolean) {
    this.#bits = withFlag(this.#bits, ENROLLED, on);
  }

  /** Whether it is known to have an ordering or a concurrency key. */
  get keyed(): boolean {
    return (this.#bits & KEYED) !== 0;
  }

  /** While it waits. */
  get spot(): Spot {
    return fieldOf(this.#bits, SPOT) as Spot;
  }

  set spot(spot: Spot) {
    this.#bits = withField(this.#bits, SPOT, spot);
  }

  /** Its last attempt, which was lost, is not to count: it waits for the next although it has none left. */
  get forgiven(): boolean {
    return (this.#bits & FORGIVEN) !== 0;
  }

  set forgiven(on: boolean) {
    this.#bits = withFlag(this.#bits, FORGIVEN, on);
  }

  keepFacts(facts: Facts): void {
    const { submittedAt, attemptsBefore, lost, policy, deadlineAt, pardoned } = facts;
    this.submittedAt = submittedAt;
    if (attemptsBefore > 0 || lost > 0 || policy !== undefined || deadlineAt !== undefined)
      this.rare = { ...this.rare, attemptsBefore, lost, policy, deadlineAt, pardoned };
    this.keepKeys(facts);
  }

  /** `orderSeq`: the sequence that gives the place among those of the ordering key, when it is not that of the event at hand. */
  keepKeys({ orderingKey, concurrencyKey, orderSeq }: Keys): void {
    if (orderingKey === undefined && concurrencyKey === undefined) return;
    this.rare = { ...this.rare, orderingKey, concurrencyKey };
    if (orderSeq !== undefined) this.order = orderSeq;
    this.#bits = withFlag(this.#bits, KEYED, true);
  }
}

// Not methods: V8 gives every object of a class that has private methods one more word.
const withFlag = (bits: number, flag: number, on: boolean): number => (on ? bits | flag : bits & ~flag);

const fieldOf = (bits: number, { at, mask }: Field): number => (bits >> at) & mask;

const withField = (bits: number, { at, mask }: Field, value: number): number =>
  (bits & ~(mask << at)) | (value << at);

/** The domain's view of the task, for `decide`. Only for a task that is `known`. */
export function stateOf(task: LiveTask, payload: Json | undefined): TaskState {
  const { policy, deadlineAt, next, attemptsBefore = 0, lost = 0, pardoned } = task.rare ?? {};
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
      ...(task.line.version === FIRST_VERSION ? {} : { version: task.line.version }),
      ...keysOf(task),
      ...(pardoned === undefined ? {} : { pardoned }),
      attemptsBefore,
      lost,
    },
    holder: undefined,
    dueAt: task.dueAt === 0 ? undefined : task.dueAt,
    next,
    cancelRequested: task.cancelRequested,
    discarded: false,
    // No decision of the dispatcher records it; not worth its memory.
    fingerprint: undefined,
    payload,
    payloadSeq: task.payloadSeq,
  };
}

function keysOf({ rare, order }: LiveTask): Keys {
  if (rare === undefined) return {};
  const { orderingKey, concurrencyKey } = rare;
  return {
    ...(orderingKey === undefined ? {} : { orderingKey, orderSeq: order }),
    ...(concurrencyKey === undefined ? {} : { concurrencyKey }),
  };
}
