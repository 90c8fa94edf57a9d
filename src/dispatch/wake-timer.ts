/** The sweep comes anyway; Node's timers cannot be set much further. */
const MAX_TIMEOUT_MS = 60_000;

/** One timer, for the earliest moment that was asked for since it last rang. */
export class WakeTimer {
  readonly #ring: () => void;
  #timer: NodeJS.Timeout | undefined;
  #at = Number.POSITIVE_INFINITY;

  constructor(ring: () => void) {
    this.#ring = ring;
  }

  /** Rings at `at`, or up to a minute from now; both in ms since 1970. */
  set(at: number, now: number): void {
    if (at >= this.#at) return;
    clearTimeout(this.#timer);
    this.#at = at;
    this.#timer = setTimeout(
      () => {
        this.#at = Number.POSITIVE_INFINITY;
        this.#ring();
      },
      Math.min(MAX_TIMEOUT_MS, Math.max(1, at - now)),
    );
  }

  stop(): void {
    clearTimeout(this.#timer);
  }
}
