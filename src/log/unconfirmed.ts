/** An election is over sooner. */
const TROUBLE_AFTER_MS = 5_000;
/** Without a new try nobody knows whether it is over: a process that is not asked to store must become worth asking. */
const TROUBLE_KEEPS_MS = 30_000;

/**
 * Tries to store that were not confirmed, with none in between that was. A server whose disk is full answers everything but
 * those, so nothing else tells. One try that fails says little: it takes several, some seconds apart. Times are monotonic, in ms.
 */
export class Unconfirmed {
  #run: { readonly since: number; readonly lastAt: number; readonly reason: string } | undefined;

  missed(reason: string, now: number): void {
    const fresh = this.#run === undefined || now - this.#run.lastAt > TROUBLE_KEEPS_MS;
    this.#run = { since: fresh ? now : (this.#run?.since ?? now), lastAt: now, reason };
  }

  /** Something was stored, or the servers are others now. */
  over(): void {
    this.#run = undefined;
  }

  trouble(now: number): string | undefined {
    if (this.#run === undefined) return undefined;
    const { since, lastAt, reason } = this.#run;
    if (lastAt - since < TROUBLE_AFTER_MS || now - lastAt > TROUBLE_KEEPS_MS) return undefined;
    const seconds = Math.round((now - since) / 1_000);
    return `nothing was stored for ${seconds} s (${reason}): see the log of nats-server, its disk may be full`;
  }
}
