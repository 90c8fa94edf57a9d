import { FIRST_VERSION } from '../domain/events.ts';
import { Allowance } from './allowance.ts';
import { FairOrder } from './fair-order.ts';

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

/** What all versions of a type share. */
export class TypeTerms extends Allowance {
  readonly type: string;
  readonly lines: TypeLine[] = [];
  /** Tasks of one tenant and concurrency key that may hold a slot. */
  keyLimit = 1;
  /** Nothing that has a concurrency key may start: see `holdLimited` of the Ledger. */
  keysHeld = false;

  constructor(type: string) {
    super();
    this.type = type;
  }
}

/** Everything the core knows of one version of a task type: each has workers, and so a ready window, of its own. Counts come from the log, but for `intents`. */
export class TypeLine {
  readonly terms: TypeTerms;
  readonly version: number;
  /** Unique among the lines: `transcode`, `transcode@2`. */
  readonly key: string;
  readonly order = new FairOrder();
  /** Tasks that wait for their turn, or for whatever holds them back. */
  waiting = 0;
  /** QUEUED and not yet claimed. */
  ready = 0;
  /** Appends of QUEUED under way. */
  intents = 0;
  delayed = 0;
  running = 0;
  /** Claims since the rate was last computed. */
  claims = 0;
  /** Claims before those. */
  #claimed = 0;
  /** Moving average, in claims a second. */
  claimRate = 0;
  /** Count of all turns when it had its last. */
  servedAt = 0;
  /** Whether the core has it on its list of lines to look at. */
  dirty = false;
  #window: number;

  constructor(
    { terms, version }: { readonly terms: TypeTerms; readonly version: number },
    limits: WindowLimits,
  ) {
    this.terms = terms;
    this.version = version;
    this.key = lineKey(terms.type, version);
    terms.lines.push(this);
    this.#window = limits.min;
  }

  get type(): string {
    return this.terms.type;
  }

  get window(): number {
    return this.#window;
  }

  /** All claims seen. */
  get claimed(): number {
    return this.#claimed + this.claims;
  }

  get windowOpen(): boolean {
    return this.ready + this.intents < this.#window;
  }

  /** Whether one more may be queued now. */
  get hasRoom(): boolean {
    return this.terms.blocks === 0 && this.windowOpen;
  }

  /** The claims so far tell nothing of the rate: they are of any age. */
  setClaimsAside(): void {
    this.#claimed += this.claims;
    this.claims = 0;
  }

  /** Folds the claims of the last `elapsedMs` into the rate and sizes the window anew. */
  measure(elapsedMs: number, limits: WindowLimits): void {
    const weight = 1 - Math.exp(-elapsedMs / RATE_MEMORY_MS);
    this.claimRate += weight * ((this.claims * 1_000) / elapsedMs - this.claimRate);
    this.setClaimsAside();
    const wanted = Math.ceil((this.claimRate * limits.ms) / 1_000);
    this.#window = Math.max(limits.min, Math.min(limits.max, wanted));
  }
}
