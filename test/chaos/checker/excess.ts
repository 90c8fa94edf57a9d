import type { Recorded } from '../../../src/domain/events.ts';

/** Something that costs a token of a rate, and when (ms since 1970). */
export interface Passage {
  readonly at: number;
  readonly recorded: Recorded;
}

/** Passages that follow each other faster than the rate alone would let them. */
export interface Stretch {
  readonly passages: readonly Passage[];
  readonly from: number;
  readonly to: number;
  /** How many more there are than the rate gives in that time. */
  readonly excess: number;
}

/** Instants are whole milliseconds, of clocks that agree better than this. */
const CLOCK_SLACK_MS = 100;

/**
 * The first stretch in which more passed than the rate gives and `allowed` besides. Like the largest sum of a row of numbers: what
 * exceeds most begins after a time in which nothing was in excess. The passages in order of time.
 */
export function firstExcess(
  passages: readonly Passage[],
  ratePerSecond: number,
  allowed: (stretch: Stretch) => number,
): Stretch | undefined {
  let begin = 0;
  let excess = 0;
  for (const [index, { at }] of passages.entries()) {
    const before = passages[index - 1]?.at ?? at;
    excess -= ((at - before) * ratePerSecond) / 1_000;
    if (excess <= 0) {
      excess = 0;
      begin = index;
    }
    excess += 1;
    // No promise is less than a token.
    if (excess <= 1) continue;
    const from = passages[begin]?.at ?? at;
    const stretch = {
      from,
      to: at,
      excess,
      get passages() {
        return passages.slice(begin, index + 1);
      },
    };
    if (excess > allowed(stretch) + (CLOCK_SLACK_MS * ratePerSecond) / 1_000) return { ...stretch };
  }
  return undefined;
}
