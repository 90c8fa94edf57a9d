import type { Recorded } from '../domain/events.ts';

/** The window in which ends of attempts are compared, and its parts: old ones fall out a part at a time. */
const WINDOW_MS = 300_000;
const PARTS = 10;
const PART_MS = WINDOW_MS / PARTS;
/** Fewer lost leases say nothing about the fleet: a few tasks that kill their workers lose as many. */
const LEAST_LOST = 20;

interface Part {
  readonly number: number;
  lost: number;
  ended: number;
}

export interface OutageState {
  readonly parts: readonly Readonly<Part>[];
  readonly condemned: readonly string[];
}

/**
 * Whether lost leases dominate: in a window of the log's own time at least LEAST_LOST attempts, and more than all that
 * ended by an outcome. Then it is the fleet that is ill (a network, a bad host, a release that crashes), and a task whose
 * attempts end in it is not to be condemned for that. Folded from the log, so that every leader knows the same.
 */
export class Outage {
  readonly #parts: Part[] = [];
  /** Tasks whose last attempt was lost during an outage, and was their last. */
  readonly #condemned = new Set<string>();

  observe({ event, storedAt }: Recorded): void {
    switch (event.kind) {
      case 'COMPLETED':
      case 'FAILED':
        this.#part(storedAt).ended += 1;
        break;
      case 'RETRY_CLAIMED':
        // A worker that is shut down says so itself.
        if (event.data.reason !== 'shutdown') this.#part(storedAt).lost += 1;
        if ('final' in event.data.next && this.dominates(storedAt)) {
          this.#condemned.add(keyOf(event));
          return;
        }
        break;
      // They change nothing about how the last attempt ended.
      case 'CARRIED':
      case 'CANCEL_REQUESTED':
        return;
      default:
        break;
    }
    if (this.#condemned.size > 0) this.#condemned.delete(keyOf(event));
  }

  /** At `now`, in ms since 1970. */
  dominates(now: number): boolean {
    const oldest = Math.floor(now / PART_MS) - PARTS;
    let lost = 0;
    let ended = 0;
    for (const part of this.#parts) {
      if (part.number <= oldest) continue;
      lost += part.lost;
      ended += part.ended;
    }
    return lost >= LEAST_LOST && lost > ended;
  }

  /** All that `restore` needs to know the same. */
  get state(): OutageState {
    return { parts: this.#parts.map((part) => ({ ...part })), condemned: [...this.#condemned] };
  }

  /** Before anything is observed. */
  restore({ parts, condemned }: OutageState): void {
    this.#parts.push(...parts.map((part) => ({ ...part })));
    for (const key of condemned) this.#condemned.add(key);
  }

  condemned(task: { readonly tenant: string; readonly taskId: string }): boolean {
    return this.#condemned.has(keyOf(task));
  }

  #part(at: number): Part {
    const number = Math.floor(at / PART_MS);
    const last = this.#parts.at(-1);
    // A server's clock may step back a little; the newest part stands for it.
    if (last !== undefined && last.number >= number) return last;
    const part = { number, lost: 0, ended: 0 };
    this.#parts.push(part);
    if (this.#parts.length > PARTS) this.#parts.shift();
    return part;
  }
}

const keyOf = ({ tenant, taskId }: { readonly tenant: string; readonly taskId: string }): string =>
  `${tenant} ${taskId}`;
