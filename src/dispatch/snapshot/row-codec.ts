import { STATUSES } from '../../domain/events.ts';
import type { Priority } from '../../domain/names.ts';
import type { Rarities } from '../live-task.ts';
import type { LoggedMode, TaskRow } from './task-row.ts';

/**
 * A row in bytes, little endian: the four integers of the id, a word of small fields and flags, the number of its place
 * (tenant, type and version), the attempt, the last sequence and the time of submission; then what its flags announce.
 */
const FIXED_BYTES = 44;
const OPTIONAL_BYTES = 28;

const MODE_AT = 0;
const STATUS_AT = 4;
const PRIORITY_AT = 8;
const KNOWN = 1 << 12;
const CANCEL_REQUESTED = 1 << 13;
const HOLDS = 1 << 14;
const STARTED = 1 << 15;
/** Otherwise the order, or the payload's sequence, is the last sequence. */
const HAS_ORDER = 1 << 16;
const HAS_PAYLOAD_SEQ = 1 << 17;
const NO_PAYLOAD_SEQ = 1 << 18;
const HAS_DUE_AT = 1 << 19;
const HAS_RARE = 1 << 20;
const IN_LANE = 1 << 21;

const FIRST_BYTES = 64 * 1_024;

/** Puts rows one after the other into memory that grows. */
export class RowWriter {
  #bytes = Buffer.alloc(FIRST_BYTES);
  #view = viewOf(this.#bytes);
  #length = 0;

  /** Bytes since the last `take`. */
  get length(): number {
    return this.#length;
  }

  /** What has been written since the last call; valid until the next row. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length);
    this.#length = 0;
    return taken;
  }

  write(row: TaskRow, place: number): void {
    const rare = row.rare === undefined ? undefined : Buffer.from(JSON.stringify(row.rare));
    this.#reserve(FIXED_BYTES + OPTIONAL_BYTES + (rare?.length ?? 0));
    const view = this.#view;
    let at = this.#length;
    for (const part of row.id) {
      view.setInt32(at, part, true);
      at += 4;
    }
    view.setUint32(at, wordOf(row), true);
    view.setUint32(at + 4, place, true);
    view.setUint32(at + 8, row.attempt, true);
    view.setFloat64(at + 12, row.seq, true);
    view.setFloat64(at + 20, row.submittedAt, true);
    at += 28;
    if (row.order !== row.seq) at = this.#number(at, row.order);
    if (row.payloadSeq !== undefined && row.payloadSeq !== row.seq) at = this.#number(at, row.payloadSeq);
    if (row.dueAt !== 0) at = this.#number(at, row.dueAt);
    if (rare !== undefined) {
      view.setUint32(at, rare.length, true);
      at += 4 + rare.copy(this.#bytes, at + 4);
    }
    this.#length = at;
  }

  #number(at: number, value: number): number {
    this.#view.setFloat64(at, value, true);
    return at + 8;
  }

  #reserve(bytes: number): void {
    if (this.#length + bytes <= this.#bytes.length) return;
    const larger = Buffer.alloc(Math.max(this.#bytes.length * 2, this.#length + bytes));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
    this.#view = viewOf(larger);
  }
}

function wordOf(row: TaskRow): number {
  return (
    (row.mode << MODE_AT) |
    (STATUSES.indexOf(row.status) << STATUS_AT) |
    (row.priority << PRIORITY_AT) |
    (row.known ? KNOWN : 0) |
    (row.cancelRequested ? CANCEL_REQUESTED : 0) |
    (row.holds ? HOLDS : 0) |
    (row.started ? STARTED : 0) |
    (row.inLane ? IN_LANE : 0) |
    (row.order === row.seq ? 0 : HAS_ORDER) |
    (row.payloadSeq === undefined ? NO_PAYLOAD_SEQ : row.payloadSeq === row.seq ? 0 : HAS_PAYLOAD_SEQ) |
    (row.dueAt === 0 ? 0 : HAS_DUE_AT) |
    (row.rare === undefined ? 0 : HAS_RARE)
  );
}

export interface Place {
  readonly tenant: string;
  readonly type: string;
  readonly version: number;
}

/** The rows of a piece of memory. Throws RangeError where it ends in the middle of one, or names what there is not. */
export function* readRows(bytes: Buffer, places: readonly Place[]): Generator<TaskRow> {
  const view = viewOf(bytes);
  let at = 0;
  const number = (): number => {
    at += 8;
    return view.getFloat64(at - 8, true);
  };
  while (at < bytes.length) {
    const id = [0, 4, 8, 12].map((offset) => view.getInt32(at + offset, true)) as [
      number,
      number,
      number,
      number,
    ];
    const word = view.getUint32(at + 16, true);
    const place = places[view.getUint32(at + 20, true)];
    const status = STATUSES[(word >> STATUS_AT) & 15];
    if (place === undefined || status === undefined) throw new RangeError('a row names what there is not');
    const attempt = view.getUint32(at + 24, true);
    const seq = view.getFloat64(at + 28, true);
    const submittedAt = view.getFloat64(at + 36, true);
    at += FIXED_BYTES;
    const order = (word & HAS_ORDER) === 0 ? seq : number();
    const samePayloadSeq = (word & NO_PAYLOAD_SEQ) === 0 ? seq : undefined;
    const payloadSeq = (word & HAS_PAYLOAD_SEQ) === 0 ? samePayloadSeq : number();
    const dueAt = (word & HAS_DUE_AT) === 0 ? 0 : number();
    let rare: Rarities | undefined;
    if ((word & HAS_RARE) !== 0) {
      const length = view.getUint32(at, true);
      rare = JSON.parse(bytes.toString('utf8', at + 4, at + 4 + length)) as Rarities;
      at += 4 + length;
    }
    yield {
      id,
      tenant: place.tenant,
      type: place.type,
      version: place.version,
      mode: ((word >> MODE_AT) & 15) as LoggedMode,
      status,
      known: (word & KNOWN) !== 0,
      cancelRequested: (word & CANCEL_REQUESTED) !== 0,
      holds: (word & HOLDS) !== 0,
      started: (word & STARTED) !== 0,
      inLane: (word & IN_LANE) !== 0,
      priority: ((word >> PRIORITY_AT) & 7) as Priority,
      attempt,
      seq,
      order,
      submittedAt,
      dueAt,
      payloadSeq,
      rare,
    };
  }
}

const viewOf = (bytes: Buffer): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
