import type { Fleet } from '../registry/fleet.ts';
import type { RunningAttempt, RunningAttempts } from './running-attempts.ts';

/** Holders asked about in one pass: a whole fleet may be silent at once. */
const MAX_LOOKS = 100;

/**
 * Finds attempts whose worker has left the registry. The first to notice a dead worker is whoever gets the redelivery;
 * this is for attempts whose delivery is lost as well, so it is patient: the entry must be gone, and still be gone a
 * whole ack-wait later.
 */
export class LostWorkers {
  readonly #attempts: Pick<RunningAttempts, 'byHolder'>;
  readonly #fleet: Pick<Fleet, 'lives' | 'isRegistered'>;
  readonly #ackWaitMs: number;
  /** Monotonic ms at which a holder's entry was first seen to be gone. */
  readonly #goneSince = new Map<string, number>();

  constructor(parts: {
    attempts: Pick<RunningAttempts, 'byHolder'>;
    fleet: Pick<Fleet, 'lives' | 'isRegistered'>;
    ackWaitMs: number;
  }) {
    this.#attempts = parts.attempts;
    this.#fleet = parts.fleet;
    this.#ackWaitMs = parts.ackWaitMs;
  }

  /** The attempts to be given up at `now` (monotonic ms), at most `limit`. Throws when the registry does not answer. */
  async find(now: number, limit: number): Promise<RunningAttempt[]> {
    const byHolder = this.#attempts.byHolder();
    for (const holder of this.#goneSince.keys()) if (!byHolder.has(holder)) this.#goneSince.delete(holder);
    const lost: RunningAttempt[] = [];
    let looks = 0;
    for (const [holder, attempts] of byHolder) {
      if (looks === MAX_LOOKS || lost.length >= limit) break;
      if (this.#fleet.lives(holder)) {
        this.#goneSince.delete(holder);
        continue;
      }
      looks += 1;
      if (await this.#isGone(holder, now)) lost.push(...attempts.slice(0, limit - lost.length));
    }
    return lost;
  }

  async #isGone(holder: string, now: number): Promise<boolean> {
    if (await this.#fleet.isRegistered(holder)) {
      this.#goneSince.delete(holder);
      return false;
    }
    const since = this.#goneSince.get(holder) ?? now;
    this.#goneSince.set(holder, since);
    return now - since >= this.#ackWaitMs;
  }
}
