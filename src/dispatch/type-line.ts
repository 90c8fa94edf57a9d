import { FIRST_VERSION } from '../domain/events.ts';
import type { Order } from './order.ts';

/** How many tasks of a type may be QUEUED and unclaimed: what its workers claim in `ms`, but at least `min` and at most `max`. */
export interface WindowLimits {
  readonly min: number;
  readonly max: number;
  readonly ms: number;
}

/** Time constant of the claim rate's moving average: long enough to smooth bursts, short enough to follow a deployment. */
const RATE_MEMORY_MS = 2_000;

export const lineKey = (type: string, version: number): string =>
  version === FIRST_VERSION ? type : `${type}@${version}`;

/** Everything the core knows of one version of a task type: each has workers, and so a ready window, of its own. Counts come from the log, but for `intents`. */
export class TypeLine {
  readonly type: string;
  readonly version: number;
  /** Unique among the lines: `transcode`, `transcode@2`. */
  readonly key: string;
  readonly order: Order;
  /** QUEUED and not yet claimed. */
  ready = 0;
  /** Appends of QUEUED under way. */
  intents = 0;
  delayed = 0;
  running = 0;
  /** Claims since the rate was last computed. */
  claims = 0;
  /** Moving average, in claims a second. */
  claimRate = 0;
  /** Whether the core has it on its list of lines to look at. */
  dirty = false;
  #window: number;

  constructor(
    { type, version }: { readonly type: string; readonly version: number },
    order: Order,
    limits: WindowLimits,
  ) {
    this.type = type;
    this.version = version;
    this.key = lineKey(type, version);
    this.order = order;
    this.#window = limits.min;
  }

  get window(): number {
    return this.#window;
  }

  /** How many more may be queued now. */
  get room(): number {
    return this.#window - this.ready - this.intents;
  }

  /** Folds the claims of the last `elapsedMs` into the rate and sizes the window anew. */
  measure(elapsedMs: number, limits: WindowLimits): void {
    const weight = 1 - Math.exp(-elapsedMs / RATE_MEMORY_MS);
    this.claimRate += weight * ((this.claims * 1_000) / elapsedMs - this.claimRate);
    this.claims = 0;
    const wanted = Math.ceil((this.claimRate * limits.ms) / 1_000);
    this.#window = Math.max(limits.min, Math.min(limits.max, wanted));
  }
}
