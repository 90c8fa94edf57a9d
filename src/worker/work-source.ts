import { creditsOf } from './credit.ts';
import type { Pull } from './pull.ts';

/** A look at what could be asked for even when nothing has happened: a pull must always be open. */
const TOP_UP_EVERY_MS = 1_000;

/** Keeps the pulls of all types topped up to what can run. */
export class WorkSource {
  readonly #pulls: readonly Pull[];
  readonly #room: { readonly free: number; freeFor(type: string): number };
  #scheduled = false;
  #held = false;
  #stopped = true;
  #first = 0;
  #regular: NodeJS.Timeout | undefined;

  constructor(pulls: readonly Pull[], room: { readonly free: number; freeFor(type: string): number }) {
    this.#pulls = pulls;
    this.#room = room;
  }

  start(): void {
    this.#stopped = false;
    for (const pull of this.#pulls) pull.start();
    this.#regular = setInterval(() => this.topUp(), TOP_UP_EVERY_MS);
    this.#topUpNow();
  }

  /** Soon asks for what can run; many calls in one turn of the loop ask once. */
  topUp(): void {
    if (this.#scheduled || this.#stopped) return;
    this.#scheduled = true;
    setImmediate(() => this.#topUpNow());
  }

  /** Asks for nothing more until it may again; what was asked for still comes. */
  hold(held: boolean): void {
    this.#held = held;
    if (!held) this.topUp();
  }

  get held(): boolean {
    return this.#held;
  }

  /** The connection is new: the server has forgotten what was asked for. */
  reconnected(): void {
    for (const pull of this.#pulls) pull.forget();
    this.topUp();
  }

  /** Resolves when the server serves nothing more. What was under way has been delivered. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#regular);
    await Promise.all(this.#pulls.map((pull) => pull.stop()));
  }

  #topUpNow(): void {
    this.#scheduled = false;
    if (this.#stopped || this.#held) return;
    const ready = this.#pulls.filter((pull) => pull.ready);
    // The first in the list has the first choice: take turns.
    const start = ready.length > 1 ? this.#first++ % ready.length : 0;
    const turn = start === 0 ? ready : [...ready.slice(start), ...ready.slice(0, start)];
    const alone = this.#pulls.length === 1;
    const demands = turn.map((pull) => ({
      free: this.#room.freeFor(pull.type),
      outstanding: pull.outstanding,
      window: alone ? Number.POSITIVE_INFINITY : pull.window,
    }));
    creditsOf(demands, this.#room.free).forEach((batch, index) => {
      if (batch > 0) turn[index]?.ask(batch);
    });
  }
}
