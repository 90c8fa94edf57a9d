/** `burst`: how many tokens there are at most, after a calm time. */
export interface Rate {
  readonly ratePerSecond: number;
  readonly burst: number;
}

export interface Allotment {
  readonly granted: number;
  /** When the bucket will be full again: all there is to know of it. */
  readonly fullAt: number;
  /** How long until there is a token; 0 when there is one left. */
  readonly nextInMs: number;
}

/** A bucket that is emptier than empty was emptied under other settings, unless the clocks of two processes differ by this. */
const CLOCK_SLACK_MS = 1_000;

/**
 * Takes up to `want` whole tokens out of a bucket that is full at `fullAt` (ms; anything before `now` is full now). Pure, and
 * order does not matter: over any time t, all calls on one bucket together are granted no more than burst + rate * t.
 */
export function allot(
  fullAt: number,
  { rate, now, want }: { readonly rate: Rate; readonly now: number; readonly want: number },
): Allotment {
  const perMs = rate.ratePerSecond / 1_000;
  const capacityMs = rate.burst / perMs;
  const emptyAt = now + capacityMs;
  const from = Math.max(now, fullAt > emptyAt + CLOCK_SLACK_MS ? emptyAt : fullAt);
  // A hair less than one is one: sums of fractions never quite arrive.
  const available = Math.floor((emptyAt - from) * perMs + 1e-6);
  const granted = Math.max(0, Math.min(want, available));
  const after = from + granted / perMs;
  return {
    granted,
    fullAt: after,
    nextInMs: available > granted ? 0 : Math.max(0, after + 1 / perMs - emptyAt),
  };
}
