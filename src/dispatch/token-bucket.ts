/**
 * Fills with `ratePerSecond` tokens a second up to `burst`, and is full at first. Time is an argument; only that of the tokens taken
 * counts, so that whoever reads of old starts has what those have who saw them.
 */
export class TokenBucket {
  #ratePerMs: number;
  #burst: number;
  #tokens: number;
  #at = 0;

  constructor(rate: { readonly ratePerSecond: number; readonly burst: number }) {
    this.#ratePerMs = rate.ratePerSecond / 1_000;
    this.#burst = rate.burst;
    this.#tokens = rate.burst;
  }

  get ratePerSecond(): number {
    return this.#ratePerMs * 1_000;
  }

  /** What it has, below zero too, and as of when (ms since 1970). */
  get level(): { readonly tokens: number; readonly at: number } {
    return { tokens: this.#tokens, at: this.#at };
  }

  restore({ tokens, at }: { readonly tokens: number; readonly at: number }): void {
    this.#tokens = this.#bounded(tokens);
    this.#at = at;
  }

  /** Keeps what it has, up to the new burst. */
  change({ ratePerSecond, burst }: { readonly ratePerSecond: number; readonly burst: number }): void {
    this.#ratePerMs = ratePerSecond / 1_000;
    this.#burst = burst;
    this.#tokens = this.#bounded(this.#tokens);
  }

  /** Takes one, below zero when there is none: what the log says has happened is paid for later. */
  take(now: number): void {
    this.#tokens = this.#bounded(this.#tokensAt(now) - 1);
    this.#at = Math.max(this.#at, now);
  }

  /**
   * When there is a token again besides those that are promised; 0 when there is one, Infinity when time alone does not
   * bring it, because more are promised than it can have.
   */
  readyAt(now: number, promised = 0): number {
    // A hair less than one is one: sums of fractions never quite arrive.
    const missing = 1 + promised - this.#tokensAt(now);
    if (missing <= 1e-9) return 0;
    return promised + 1 > this.#burst
      ? Number.POSITIVE_INFINITY
      : Math.max(this.#at, now) + Math.ceil(missing / this.#ratePerMs);
  }

  #tokensAt(now: number): number {
    return Math.min(this.#burst, this.#tokens + Math.max(0, now - this.#at) * this.#ratePerMs);
  }

  /** Nobody owes more than a burst, which is what a former leader may have had under way: the rest was started under other settings. */
  #bounded(tokens: number): number {
    return Math.max(-this.#burst, Math.min(tokens, this.#burst));
  }
}
