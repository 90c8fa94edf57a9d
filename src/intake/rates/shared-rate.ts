import { type Allotment, allot, type Rate } from './allotment.ts';

/** A bucket that several processes draw from: one number, `fullAt` (see allot), changed by compare and set. */
export interface SharedBucket {
  /** Replaces `fullAt` by what `change` makes of it (0 when there is none yet); called again when another process was faster. */
  change(change: (fullAt: number) => number): Promise<void>;
}

export interface RateRefusal {
  /** When to try again, in ms from now. */
  readonly retryAfterMs: number;
}

export interface SharedRateParts {
  readonly bucket: SharedBucket;
  /** The time of the bucket, in ms, the same for all processes but for a little lag. */
  readonly now: () => number;
  /** Elapsed time, in ms. */
  readonly monotonic: () => number;
  /** Told that the bucket does not answer. */
  readonly onOutage: (reason: string) => void;
}

/** What a process may hold in advance: the tokens of this long. Also the bound by which a rate can be exceeded, for each process. */
export const SHARE_MS = 100;
/** An empty bucket is not asked again for this long, or for half a burst's time when that is shorter. */
const ASK_AGAIN_MS = 50;
/** A bucket that did not answer is left alone for this long. */
const ALONE_MS = 1_000;

/**
 * This process's part in a rate that all processes share. Tokens are drawn from the shared bucket in shares, ahead of
 * need when they are needed fast, so that a submission waits for the bucket only when none is left here.
 *
 * Bound: over any time t all processes together let through no more than burst + rate * t, and one share (SHARE_MS of the
 * rate, at least one token) for each process. While the bucket does not answer, each process allows the whole rate alone.
 */
export class SharedRate {
  readonly #parts: SharedRateParts;
  #rate: Rate;
  #tokens = 0;
  #waiting = 0;
  /** Submissions since the last draw, which tell how many tokens the next one should bring. */
  #used = 0;
  #drawnAt: number;
  #drawing: Promise<void> | undefined;
  /** The bucket is known to be empty until then (monotonic). */
  #emptyUntil = 0;
  /** The bucket of this process alone, for outages (monotonic). */
  #ownFullAt = 0;
  #aloneUntil = 0;

  constructor(rate: Rate, parts: SharedRateParts) {
    this.#rate = rate;
    this.#parts = parts;
    this.#drawnAt = parts.monotonic();
  }

  get rate(): Rate {
    return this.#rate;
  }

  /** Tokens drawn under the old rate are given up. */
  set rate(rate: Rate) {
    if (rate.ratePerSecond === this.#rate.ratePerSecond && rate.burst === this.#rate.burst) return;
    this.#rate = rate;
    this.#tokens = 0;
    this.#emptyUntil = 0;
  }

  /** How long it will go on refusing without being asked; 0 when it may let one through. */
  get closedForMs(): number {
    return this.#tokens >= 1 ? 0 : Math.max(0, this.#emptyUntil - this.#parts.monotonic());
  }

  /** Takes a token, or says when there may be one. Answers at once unless the bucket has to be asked. */
  take(): undefined | RateRefusal | Promise<undefined | RateRefusal> {
    const taken = this.#takeHere();
    return taken === 'ask' ? this.#ask() : taken;
  }

  /** The token was not needed after all. */
  giveBack(): void {
    this.#tokens += 1;
  }

  #takeHere(): undefined | RateRefusal | 'ask' {
    if (this.#tokens >= 1) {
      this.#tokens -= 1;
      this.#used += 1;
      if (this.#isRunningLow()) void this.#draw();
      return undefined;
    }
    const closedForMs = this.closedForMs;
    return closedForMs > 0 ? { retryAfterMs: Math.ceil(closedForMs) } : 'ask';
  }

  /** Few left, but some: a process that needs them one by one draws none that another may need sooner. */
  #isRunningLow(): boolean {
    return (
      this.#tokens > 0 && this.#tokens < this.#wanted() / 2 && this.#parts.monotonic() >= this.#emptyUntil
    );
  }

  async #ask(): Promise<undefined | RateRefusal> {
    this.#waiting += 1;
    try {
      for (;;) {
        await this.#draw();
        const taken = this.#takeHere();
        if (taken !== 'ask') return taken;
      }
    } finally {
      this.#waiting -= 1;
    }
  }

  /** One draw at a time; whoever comes meanwhile waits for it. */
  #draw(): Promise<void> {
    this.#drawing ??= this.#drawOnce().finally(() => {
      this.#drawing = undefined;
    });
    return this.#drawing;
  }

  async #drawOnce(): Promise<void> {
    const { monotonic } = this.#parts;
    const rate = this.#rate;
    const want = Math.max(1, this.#waiting, this.#wanted() - this.#tokens);
    this.#used = 0;
    this.#drawnAt = monotonic();
    const drawn = (await this.#drawShared(want)) ?? this.#drawAlone(want);
    if (rate !== this.#rate) return;
    this.#tokens += drawn.granted;
    if (drawn.granted >= want) return;
    const pauseMs = Math.min(ASK_AGAIN_MS, (rate.burst / rate.ratePerSecond) * 500);
    this.#emptyUntil = monotonic() + Math.max(drawn.nextInMs, pauseMs);
  }

  /** Undefined while the bucket does not answer. */
  async #drawShared(want: number): Promise<Allotment | undefined> {
    const { bucket, now, monotonic, onOutage } = this.#parts;
    if (monotonic() < this.#aloneUntil) return undefined;
    const rate = this.#rate;
    let drawn: Allotment | undefined;
    try {
      await bucket.change((fullAt) => {
        drawn = allot(fullAt, { rate, now: now(), want });
        return drawn.granted === 0 ? fullAt : drawn.fullAt;
      });
      return drawn;
    } catch (error) {
      this.#aloneUntil = monotonic() + ALONE_MS;
      onOutage(error instanceof Error ? error.message : String(error));
      return undefined;
    }
  }

  #drawAlone(want: number): Allotment {
    const own = allot(this.#ownFullAt, { rate: this.#rate, now: this.#parts.monotonic(), want });
    if (own.granted > 0) this.#ownFullAt = own.fullAt;
    return own;
  }

  /** Tokens of SHARE_MS at the pace of late, so that a process that needs few holds few back from the others. */
  #wanted(): number {
    const { ratePerSecond, burst } = this.#rate;
    const most = Math.max(1, Math.floor(Math.min(burst, (ratePerSecond * SHARE_MS) / 1_000)));
    const elapsedMs = Math.max(1, this.#parts.monotonic() - this.#drawnAt);
    return Math.min(most, Math.max(1, Math.ceil((this.#used / elapsedMs) * SHARE_MS)));
  }
}
