/** How far the read models are behind the log, while they cannot be asked themselves. */
export interface Lag {
  readonly lagEvents: number;
  /** Since they last moved; 0 when they reflect the whole log. */
  readonly lagSeconds: number;
}

/** The end of the log is asked for no more often than this, however many queries are refused. */
const REMEMBER_MS = 500;
/** A query is refused at once, with the lag or without. */
const PATIENCE_MS = 300;

/** Says the lag from what is known of the read models and from the end of the log. */
export class Staleness {
  readonly #lastSeq: () => Promise<number>;
  #position: number | undefined;
  /** Monotonic ms: when they last moved. */
  #movedAt = 0;
  #asked: { readonly at: number; readonly answer: Promise<number> } | undefined;

  constructor(lastSeq: () => Promise<number>) {
    this.#lastSeq = lastSeq;
  }

  /** All read models reflect this sequence. */
  moved(position: number): void {
    if (position === this.#position) return;
    this.#position = position;
    this.#movedAt = performance.now();
  }

  /** Undefined when their position has never been known, or the log does not answer. */
  async lag(): Promise<Lag | undefined> {
    const lastSeq = await this.#end();
    if (lastSeq === undefined || this.#position === undefined) return undefined;
    const lagEvents = Math.max(0, lastSeq - this.#position);
    const lagSeconds = lagEvents === 0 ? 0 : Math.round((performance.now() - this.#movedAt) / 1_000);
    return { lagEvents, lagSeconds };
  }

  async #end(): Promise<number | undefined> {
    const now = performance.now();
    if (this.#asked === undefined || now - this.#asked.at > REMEMBER_MS)
      this.#asked = { at: now, answer: this.#lastSeq() };
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), PATIENCE_MS);
    });
    try {
      return await Promise.race([this.#asked.answer.catch(() => undefined), late]);
    } finally {
      clearTimeout(timer);
    }
  }
}
