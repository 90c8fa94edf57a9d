import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import { sparingly } from '../platform/patience.ts';
import { isFull } from './backlog.ts';
import { SentBack } from './sent-back.ts';

export interface CrowdOptions {
  /** Messages that may wait for an ack, over all processes. */
  readonly limit: number;
  /** How many do: what the consumer says, the same for all processes. */
  readonly pending: () => Promise<number>;
  /** Monotonic. */
  readonly clock: Clock;
  readonly logger: Logger;
}

const LOOK_EVERY_MS = 1_000;
/** Of the limit: after so many questions it looks at once, since each is a message that was sent back or refused. */
const LOOK_AFTER = 1 / 16;
/** Of the limit, in one process. */
const FEW = 1 / 1_024;

/**
 * Whether so much waits in SUBMISSIONS to come again that soon nobody's messages would be delivered, and whose it is.
 * It looks only when somebody asks, and while it is crowded.
 *
 * Modes: roomy -> (the limit is reached) -> crowded -> (down to 80 % of it) -> roomy.
 */
export class Crowd {
  readonly #options: CrowdOptions;
  readonly #sent: SentBack;
  readonly #sayTrouble: (error: unknown) => void;
  #pending = 0;
  #crowded = false;
  #lookedAt = Number.NEGATIVE_INFINITY;
  #asked = 0;
  #looking: Promise<void> | undefined;
  #next: NodeJS.Timeout | undefined;

  constructor(options: CrowdOptions) {
    this.#options = options;
    this.#sent = new SentBack(Math.max(1, Math.floor(options.limit * FEW)));
    this.#sayTrouble = sparingly((error) =>
      options.logger.warn({ reason: (error as Error).message }, 'how much waits in SUBMISSIONS is not known'),
    );
  }

  sentBack(tenant: string, seq: number, forMs: number): void {
    const now = this.#options.clock.now();
    this.#sent.forgetDue(now);
    this.#sent.add({ tenant, seq, dueAt: now + forMs });
  }

  cameAgain(seq: number): void {
    this.#sent.cameAgain(seq);
  }

  /** Whether it is crowded, and the tenant has an equal share or more of it. */
  async isCrowdedBy(tenant: string): Promise<boolean> {
    const { clock, limit } = this.#options;
    this.#asked += 1;
    if (this.#asked > limit * LOOK_AFTER || clock.now() - this.#lookedAt >= LOOK_EVERY_MS) await this.#look();
    if (!this.#crowded) return false;
    this.#sent.forgetDue(clock.now());
    return this.#sent.hasShare(tenant, { pending: this.#pending, limit });
  }

  async stop(): Promise<void> {
    await this.#looking;
    clearTimeout(this.#next);
  }

  #look(): Promise<void> {
    this.#looking ??= this.#lookOnce().finally(() => {
      this.#looking = undefined;
    });
    return this.#looking;
  }

  /** What was seen last stands while nothing can be seen. */
  async #lookOnce(): Promise<void> {
    const { pending, clock, limit, logger } = this.#options;
    clearTimeout(this.#next);
    this.#asked = 0;
    try {
      this.#pending = await pending();
      const was = this.#crowded;
      this.#crowded = isFull({ waiting: this.#pending, limit }, was);
      if (was !== this.#crowded)
        logger.warn(
          { waiting: this.#pending, limit },
          this.#crowded
            ? 'too many submissions wait to come again: those of the tenants that have most of them are refused'
            : 'fewer submissions wait to come again: none is refused for them any more',
        );
    } catch (error) {
      this.#sayTrouble(error);
    }
    this.#lookedAt = clock.now();
    if (!this.#crowded) return;
    this.#next = setTimeout(() => void this.#look(), LOOK_EVERY_MS);
    this.#next.unref();
  }
}
