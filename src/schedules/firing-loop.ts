import type { Leadership } from '../log/leadership.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import { Nap } from '../platform/nap.ts';
import type { Service } from '../platform/service.ts';
import type { Firing, Pass } from './firing.ts';

interface FiringLoopParts {
  readonly firing: Pick<Firing, 'runOnce'>;
  readonly leadership: Pick<Leadership, 'holds'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Node's timers cannot be set much further, and a clock that was set is noticed. */
const LONGEST_WAIT_MS = 60_000;
const RETRY_MS = 1_000;

/**
 * Passes of the firing, while it leads.
 *
 *   waiting -> firing   a slot is due, a schedule has changed, or it has become the leader
 *   firing -> waiting   the pass is over
 */
export class FiringLoop implements Service {
  readonly name = 'firing';
  readonly #parts: FiringLoopParts;
  readonly #nap = new Nap();
  /** Something has changed since the last pass began. */
  #changed = false;
  #stopping = false;
  #loop: Promise<void> | undefined;

  constructor(parts: FiringLoopParts) {
    this.#parts = parts;
  }

  get stopping(): boolean {
    return this.#stopping;
  }

  async start(): Promise<void> {
    this.#loop ??= this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    this.#nap.wake();
    await this.#loop;
  }

  /** Something has changed. */
  wake(): void {
    this.#changed = true;
    this.#nap.wake();
  }

  async #run(): Promise<void> {
    const { leadership, clock } = this.#parts;
    while (!this.#stopping) {
      this.#changed = false;
      // A lease that was renewed late comes back without a word.
      const until = leadership.holds() ? (await this.#pass()).nextAt : clock.now() + RETRY_MS;
      if (this.#changed || this.#stopping) continue;
      await this.#nap.take(Math.min(LONGEST_WAIT_MS, Math.max(1, until - clock.now())));
    }
  }

  async #pass(): Promise<Pass> {
    const { firing, clock, logger } = this.#parts;
    try {
      const pass = await firing.runOnce();
      const { nextAt: _nextAt, ...counts } = pass;
      if (counts.fired > 0 || counts.skipped > 0 || counts.failed > 0) logger.info(counts, 'slots fired');
      return pass;
    } catch (error) {
      logger.error({ error: String(error) }, 'the schedules cannot be looked after');
      return { fired: 0, skipped: 0, failed: 0, nextAt: clock.now() + RETRY_MS };
    }
  }
}
