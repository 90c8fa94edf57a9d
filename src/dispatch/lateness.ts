/** In ms. Finer where a person would not notice, coarse where only the order of magnitude matters. */
const BOUNDS_MS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000] as const;

/** Tasks by how late they were, in ms: each counted once, under the smallest bound that it kept, or under `more`. */
export type LatenessCounts = Readonly<Record<string, number>>;

/** How late tasks were released that waited for a time. Costs the same for one and for a million. */
export class Lateness {
  readonly #counts: Record<string, number> = Object.fromEntries([
    ...BOUNDS_MS.map((bound) => [bound, 0]),
    ['more', 0],
  ]);

  note(lateMs: number): void {
    const part = BOUNDS_MS.find((bound) => lateMs <= bound) ?? 'more';
    this.#counts[part] = (this.#counts[part] ?? 0) + 1;
  }

  told(): LatenessCounts {
    return { ...this.#counts };
  }
}
