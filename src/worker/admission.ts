import type { Delivery } from './delivery.ts';

export interface AdmissionOptions {
  /** Attempts that may run at once, over all types. */
  readonly total: number;
  /** The same for single types; the others may use all of `total`. */
  readonly byType: ReadonlyMap<string, number>;
  /** Starts an attempt; `done` must be called when it ends. */
  begin(delivery: Delivery): void;
  /** Gives a delivery back unclaimed. */
  handBack(delivery: Delivery): void;
}

/** A delivery more than there are slots waits this long for one before it is handed back: others may be free. */
const PATIENCE_MS = 250;

interface Waiting {
  readonly delivery: Delivery;
  readonly patience: NodeJS.Timeout;
}

/** Lets deliveries start while there are slots. Few ever wait: work is only asked for when there is room (credit.ts). */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #running = new Map<string, number>();
  #total = 0;
  #waiting: Waiting[] = [];
  #closed = false;
  #idle: (() => void)[] = [];

  constructor(options: AdmissionOptions) {
    this.#options = options;
  }

  get running(): number {
    return this.#total;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Free slots that nobody waits for, over all types. */
  get free(): number {
    return this.#closed ? 0 : Math.max(0, this.#options.total - this.#total - this.#waiting.length);
  }

  freeFor(type: string): number {
    const limit = this.#options.byType.get(type) ?? this.#options.total;
    return Math.min(this.free, limit - (this.#running.get(type) ?? 0));
  }

  offer(delivery: Delivery): void {
    if (this.#closed) this.#options.handBack(delivery);
    else if (this.#hasRoom(delivery.type)) this.#begin(delivery);
    else this.#wait(delivery);
  }

  #wait(delivery: Delivery): void {
    const waiting: Waiting = {
      delivery,
      patience: setTimeout(() => {
        this.#waiting = this.#waiting.filter((other) => other !== waiting);
        this.#options.handBack(delivery);
        this.#tellIdle();
      }, PATIENCE_MS),
    };
    this.#waiting.push(waiting);
  }

  done(type: string): void {
    this.#total -= 1;
    this.#running.set(type, (this.#running.get(type) ?? 1) - 1);
    const index = this.#waiting.findIndex(({ delivery }) => this.#hasRoom(delivery.type));
    const [next] = index < 0 ? [] : this.#waiting.splice(index, 1);
    if (next !== undefined) {
      clearTimeout(next.patience);
      this.#begin(next.delivery);
    }
    this.#tellIdle();
  }

  /** Nothing starts any more; what waits is handed back. */
  close(): void {
    this.#closed = true;
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { delivery, patience } of waiting) {
      clearTimeout(patience);
      this.#options.handBack(delivery);
    }
    this.#tellIdle();
  }

  /** Resolves when nothing runs and nothing waits. */
  whenIdle(): Promise<void> {
    return new Promise((resolve) => {
      this.#idle.push(resolve);
      this.#tellIdle();
    });
  }

  #hasRoom(type: string): boolean {
    const { total, byType } = this.#options;
    return this.#total < total && (this.#running.get(type) ?? 0) < (byType.get(type) ?? total);
  }

  #begin(delivery: Delivery): void {
    this.#total += 1;
    this.#running.set(delivery.type, (this.#running.get(delivery.type) ?? 0) + 1);
    this.#options.begin(delivery);
  }

  #tellIdle(): void {
    if (this.#total > 0 || this.#waiting.length > 0) return;
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}
