/** Fills with `ratePerSecond` tokens a second up to `burst`. Time is an argument and never goes back. */
export class TokenBucket {
  #ratePerMs: number;
  #burst: number;
  #tokens: number;
  #at: number;

  constructor(rate: { readonly ratePerSecond: number; readonly burst: number }, at: number) {
    this.#ratePerMs = rate.ratePerSecond / 1_000;
    this.#burst = rate.burst;
    this.#tokens = rate.burst;
    this.#at = at;
  }

  get ratePerSecond(): number {
    return this.#ratePerMs * 1_000;
  }

  /** What it has, below zero too, and as of when (ms since 1970). */
  get level(): { readonly tokens: number; readonly at: number } {
    return { tokens: this.#tokens, at: this.#at };
  }

  restore({ tokens, at }: { readonly tokens: number; readonly at: number }): void {
    this.#tokens = Math.min(tokens, this.#burst);
    this.#at = at;
  }

  /** Keeps what it has, up to the new burst. */
  change({ ratePerSecond, burst }: { readonly ratePerSecond: number; readonly burst: number }): void {
    this.#ratePerMs = ratePerSecond / 1_000;
    this.#burst = burst;
    this.#tokens = Math.min(this.#tokens, burst);
  }

  /** Takes one, below zero when there is none: what the log says has happened is paid for later. */
  take(now: number): void {
    this.#fill(now);
    this.#tokens -= 1;
  }

  /** When there is a token again; 0 when there is one. */
  readyAt(now: number): number {
    this.#fill(now);
    // A hair less than one is one: sums of fractions never quite arrive.
    const missing = 1 - this.#tokens;
    return missing <= 1e-9 ? 0 : this.#at + Math.ceil(missing / this.#ratePerMs);
  }

  #fill(now: number): void {
    if (now <= this.#at) return;
    this.#tokens = Math.min(this.#burst, this.#tokens + (now - this.#at) * this.#ratePerMs);
    this.#at = now;
  }
}
