/**
 * The leases of a worker in memory that its lease thread shares, so that a handler which blocks the main thread right
 * from its start keeps its lease: taking one is a few stores, no message.
 *
 * Owner: the main thread takes and releases slots; the lease thread only sets `confirmedAt`. A slot's generation is
 * written last when it is taken and is 0 while it is free, so that a reader can tell a torn copy. All times are
 * monotonic ms (monotonic.ts).
 */
const HEADER_BYTES = 64;
const TICK_AT = 0;

const GENERATION = 0;
const ATTEMPT = 4;
const ACK_LENGTH = 8;
const TASK_LENGTH = 12;
const ACK_WAIT_MS = 16;
const RENEW_UNTIL = 24;
const CONFIRMED_AT = 32;
const ACK_TEXT = 40;
/** Long enough for two stream tokens of 255 characters, a domain and the numbers. */
const ACK_CAPACITY = 800;
const TASK_TEXT = ACK_TEXT + ACK_CAPACITY;
/** `<tenant>/<task id>`. */
const TASK_CAPACITY = 112;
const SLOT_BYTES = TASK_TEXT + TASK_CAPACITY;

export interface Lease {
  /** `<tenant>/<task id>` */
  readonly task: string;
  readonly attempt: number;
  readonly ackSubject: string;
  readonly ackWaitMs: number;
  /** Not to be renewed after this: the attempt is past its timeout and the grace. */
  readonly renewUntil: number;
  /** When the last renewal that was confirmed had been sent; at first, when the delivery arrived. */
  readonly confirmedAt: number;
}

export interface HeldLease extends Lease {
  readonly slot: number;
  /** Identifies this holding of the slot. */
  readonly generation: number;
}

export class LeaseTable {
  readonly shared: SharedArrayBuffer;
  readonly slots: number;
  readonly #words: Int32Array;
  readonly #numbers: Float64Array;
  readonly #bytes: Buffer;
  /** Free slots; only the main thread's side uses it. */
  readonly #free: number[];
  #generation = 0;

  constructor(shared: SharedArrayBuffer) {
    this.shared = shared;
    this.slots = (shared.byteLength - HEADER_BYTES) / SLOT_BYTES;
    this.#words = new Int32Array(shared);
    this.#numbers = new Float64Array(shared);
    this.#bytes = Buffer.from(shared);
    this.#free = Array.from({ length: this.slots }, (_, index) => this.slots - 1 - index);
  }

  static create(slots: number): LeaseTable {
    return new LeaseTable(new SharedArrayBuffer(HEADER_BYTES + slots * SLOT_BYTES));
  }

  /** Says that the main thread's loop turns. */
  tick(now: number): void {
    this.#numbers[TICK_AT / 8] = now;
  }

  get tickedAt(): number {
    return this.#numbers[TICK_AT / 8] ?? 0;
  }

  /** Takes a slot, or answers -1 when all are taken. */
  take(lease: Lease): number {
    const slot = this.#free.pop();
    if (slot === undefined) return -1;
    const at = HEADER_BYTES + slot * SLOT_BYTES;
    this.#words[(at + ATTEMPT) / 4] = lease.attempt;
    this.#words[(at + ACK_LENGTH) / 4] = this.#bytes.write(
      lease.ackSubject,
      at + ACK_TEXT,
      ACK_CAPACITY,
      'latin1',
    );
    this.#words[(at + TASK_LENGTH) / 4] = this.#bytes.write(
      lease.task,
      at + TASK_TEXT,
      TASK_CAPACITY,
      'latin1',
    );
    this.#numbers[(at + ACK_WAIT_MS) / 8] = lease.ackWaitMs;
    this.#numbers[(at + RENEW_UNTIL) / 8] = lease.renewUntil;
    this.#numbers[(at + CONFIRMED_AT) / 8] = lease.confirmedAt;
    this.#generation = (this.#generation % 0x7fff_fffe) + 1;
    Atomics.store(this.#words, (at + GENERATION) / 4, this.#generation);
    return slot;
  }

  release(slot: number): void {
    Atomics.store(this.#words, (HEADER_BYTES + slot * SLOT_BYTES + GENERATION) / 4, 0);
    this.#free.push(slot);
  }

  setRenewUntil(slot: number, renewUntil: number): void {
    this.#numbers[(HEADER_BYTES + slot * SLOT_BYTES + RENEW_UNTIL) / 8] = renewUntil;
  }

  confirmedAt(slot: number): number {
    return this.#numbers[(HEADER_BYTES + slot * SLOT_BYTES + CONFIRMED_AT) / 8] ?? 0;
  }

  /** The lease thread's: the renewal sent at `sentAt` arrived. Ignored when the slot has been released since. */
  confirm(slot: number, generation: number, sentAt: number): void {
    const at = HEADER_BYTES + slot * SLOT_BYTES;
    if (Atomics.load(this.#words, (at + GENERATION) / 4) !== generation) return;
    this.#numbers[(at + CONFIRMED_AT) / 8] = sentAt;
  }

  /** A consistent copy of every taken slot. */
  held(): HeldLease[] {
    const leases: HeldLease[] = [];
    for (let slot = 0; slot < this.slots; slot++) {
      const lease = this.#read(slot);
      if (lease !== undefined) leases.push(lease);
    }
    return leases;
  }

  #read(slot: number): HeldLease | undefined {
    const at = HEADER_BYTES + slot * SLOT_BYTES;
    const generation = Atomics.load(this.#words, (at + GENERATION) / 4);
    if (generation === 0) return undefined;
    const lease = {
      slot,
      generation,
      task: this.#text(at + TASK_TEXT, this.#words[(at + TASK_LENGTH) / 4]),
      attempt: this.#words[(at + ATTEMPT) / 4] ?? 0,
      ackSubject: this.#text(at + ACK_TEXT, this.#words[(at + ACK_LENGTH) / 4]),
      ackWaitMs: this.#numbers[(at + ACK_WAIT_MS) / 8] ?? 0,
      renewUntil: this.#numbers[(at + RENEW_UNTIL) / 8] ?? 0,
      confirmedAt: this.#numbers[(at + CONFIRMED_AT) / 8] ?? 0,
    };
    return Atomics.load(this.#words, (at + GENERATION) / 4) === generation ? lease : undefined;
  }

  #text(from: number, length = 0): string {
    return this.#bytes.toString('latin1', from, from + length);
  }
}
