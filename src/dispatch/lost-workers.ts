import type { LostReason } from '../domain/events.ts';
import type { Fleet } from '../registry/fleet.ts';
import type { RunningAttempt, RunningAttempts } from './running-attempts.ts';

/** Holders asked about in one pass: a whole fleet may be silent at once. */
const MAX_LOOKS = 100;

/** An attempt to be given up. */
export interface LostAttempt extends RunningAttempt {
  readonly reason: LostReason;
}

interface LostWorkersParts {
  readonly attempts: Pick<RunningAttempts, 'byHolder'>;
  readonly fleet: Pick<Fleet, 'sightOf' | 'askAfter'>;
  readonly ackWaitMs: number;
}

/**
 * Finds attempts that their worker does not run any more. The first to notice is whoever gets the redelivery; this is
 * for attempts whose delivery is lost as well, with a consumer that was deleted. So it is an ack-wait more patient:
 *
 *   the worker is silent    it has not written its entry for its patience and an ack-wait, and the bucket has no newer one
 *   it has left             nothing is heard of it, and the bucket has had no entry for an ack-wait
 *   it does not report it   it writes its entry, and for its patience and an ack-wait no entry has had the attempt in it
 */
export class LostWorkers {
  readonly #parts: LostWorkersParts;
  /** Monotonic ms at which a holder's entry was first seen to be gone. */
  readonly #goneSince = new Map<string, number>();
  /** Monotonic ms at which an attempt was first missing in its holder's entry. */
  #unreported = new Map<string, number>();

  constructor(parts: LostWorkersParts) {
    this.#parts = parts;
  }

  /** The attempts to be given up at `now` (monotonic ms), at most `limit`. Throws when the registry does not answer. */
  async find(now: number, limit: number): Promise<LostAttempt[]> {
    const { attempts, fleet, ackWaitMs } = this.#parts;
    const byHolder = attempts.byHolder();
    for (const holder of this.#goneSince.keys()) if (!byHolder.has(holder)) this.#goneSince.delete(holder);
    const lost: LostAttempt[] = [];
    const unreported = new Map<string, number>();
    const suspects: [holder: string, held: readonly RunningAttempt[]][] = [];
    for (const [holder, held] of byHolder) {
      const sight = fleet.sightOf(holder);
      if (sight === undefined || sight.silentMs >= sight.patienceMs + ackWaitMs) {
        suspects.push([holder, held]);
        continue;
      }
      this.#goneSince.delete(holder);
      for (const attempt of held) {
        if (sight.silentMs > sight.patienceMs || sight.reports(attempt)) continue;
        const key = `${holder} ${attempt.tenant}/${attempt.taskId}#${attempt.attempt}`;
        const since = this.#unreported.get(key) ?? now;
        unreported.set(key, since);
        if (now - since >= sight.patienceMs + ackWaitMs) lost.push({ ...attempt, reason: 'lease_expired' });
      }
    }
    this.#unreported = unreported;
    for (const [holder, held] of suspects.slice(0, MAX_LOOKS)) {
      if (lost.length >= limit) break;
      if (await this.#isGone(holder, now))
        lost.push(...held.map((attempt) => ({ ...attempt, reason: 'worker_gone' as const })));
    }
    return lost.slice(0, limit);
  }

  /** Of a holder that is silent or unknown. */
  async #isGone(holder: string, now: number): Promise<boolean> {
    const { fleet, ackWaitMs } = this.#parts;
    const entry = await fleet.askAfter(holder);
    if (entry === 'written') {
      this.#goneSince.delete(holder);
      return false;
    }
    if (entry === 'same') return true;
    const since = this.#goneSince.get(holder) ?? now;
    this.#goneSince.set(holder, since);
    return now - since >= ackWaitMs;
  }
}
