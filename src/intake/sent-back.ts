interface Sent {
  readonly tenant: string;
  readonly second: number;
}

/**
 * The messages of each tenant that this process has sent back to SUBMISSIONS and that have not come again. Time is an
 * argument, in ms of a clock that only goes forward. A message is forgotten within a second after it was to come again:
 * another process may have got it, and counts it if it sends it back.
 */
export class SentBack {
  readonly #sent = new Map<number, Sent>();
  /** Sequences by the second in which they come again: there are at most as many as the longest wait has. */
  readonly #due = new Map<number, Set<number>>();
  readonly #counts = new Map<string, number>();
  readonly #few: number;

  /** `few`, at least 1: less than that says nothing of a tenant's share. */
  constructor(few: number) {
    this.#few = few;
  }

  add({ tenant, seq, dueAt }: { tenant: string; seq: number; dueAt: number }): void {
    this.cameAgain(seq);
    const second = Math.ceil(dueAt / 1_000);
    this.#sent.set(seq, { tenant, second });
    const due = this.#due.get(second);
    if (due === undefined) this.#due.set(second, new Set([seq]));
    else due.add(seq);
    this.#counts.set(tenant, this.of(tenant) + 1);
  }

  cameAgain(seq: number): void {
    const sent = this.#sent.get(seq);
    if (sent === undefined) return;
    const { tenant, second } = sent;
    this.#sent.delete(seq);
    const due = this.#due.get(second);
    due?.delete(seq);
    if (due?.size === 0) this.#due.delete(second);
    const left = this.of(tenant) - 1;
    if (left > 0) this.#counts.set(tenant, left);
    else this.#counts.delete(tenant);
  }

  forgetDue(now: number): void {
    for (const [second, due] of this.#due)
      if (second * 1_000 <= now) for (const seq of due) this.cameAgain(seq);
  }

  of(tenant: string): number {
    return this.#counts.get(tenant) ?? 0;
  }

  /**
   * Whether a tenant has an equal share or more of what waits. This process sees a part of `pending`, all that waits:
   * when that is more than the limit, the share is one of the limit, so that late comers find room beside the first.
   */
  hasShare(tenant: string, { pending, limit }: { pending: number; limit: number }): boolean {
    const own = this.of(tenant);
    const share = (this.#sent.size / this.#counts.size) * Math.min(1, limit / pending);
    return own >= this.#few && own >= share;
  }
}
