import { Deque } from './deque.ts';

/** The first sequence of a span of time, and when it was stored (ms since 1970). */
export interface AgeGrain {
  readonly seq: number;
  readonly storedAt: number;
}

/** Knows, to a grain of time, which sequences of the log are old, without keeping a time for every event. */
export class LogAge {
  readonly #grainMs: number;
  /** The first sequence of every grain in which there was one, oldest first. */
  readonly #grains = new Deque<AgeGrain>();
  #nextGrainAt = Number.NEGATIVE_INFINITY;
  #lastSeq = 0;

  constructor(grainMs: number) {
    this.#grainMs = grainMs;
  }

  /** An event was stored; in the order of the log. */
  note(seq: number, storedAt: number): void {
    this.#lastSeq = seq;
    if (storedAt < this.#nextGrainAt) return;
    this.#grains.push({ seq, storedAt });
    this.#nextGrainAt = storedAt + this.#grainMs;
  }

  /** All that `restore` needs to know the same. */
  get grains(): readonly AgeGrain[] {
    const grains: AgeGrain[] = [];
    this.#grains.forEach((grain) => void grains.push(grain));
    return grains;
  }

  /** Before anything is noted. */
  restore(grains: readonly AgeGrain[]): void {
    for (const { seq, storedAt } of grains) this.note(seq, storedAt);
  }

  /** The highest sequence stored before `instant` (ms since 1970), to a grain; undefined when that is no news since the last call. */
  takeUntil(instant: number): number | undefined {
    let seq: number | undefined;
    for (let grain = this.#grains.peek(); grain !== undefined; grain = this.#grains.peek()) {
      if (grain.storedAt + this.#grainMs > instant) break;
      this.#grains.shift();
      // Whatever came before the next grain began is of this one.
      seq = (this.#grains.peek()?.seq ?? this.#lastSeq + 1) - 1;
    }
    return seq;
  }
}
