import type { Json } from '../domain/json.ts';
import type { HeldLease, LeaseTable } from './lease-table.ts';

/** What the main thread tells the lease thread. Leases themselves go through the shared table. */
export type ToLeaseThread =
  | { readonly kind: 'stop' }
  | { readonly kind: 'degraded'; readonly reason: string | undefined }
  | { readonly kind: 'progress'; readonly task: string; readonly attempt: number; readonly progress: Json };
export type FromLeaseThread = { readonly kind: 'started' } | { readonly kind: 'stopped' };

/** A loop that is late by less is not stuck: ticks come every 200 ms. */
const TICK_TOLERANCE_MS = 1_000;
const RENEWALS_PER_ACK_WAIT = 3;

/** Which leases are to be renewed when. No clock and no connection: times are passed in, in monotonic ms. */
export class LeaseRenewal {
  readonly #table: LeaseTable;
  readonly #maxBlockedMs: number;
  /** When each slot's present holding was last tried to be renewed; undefined after a failure, to try again at once. */
  readonly #tried = new Map<number, { readonly generation: number; readonly at: number }>();

  constructor({ table, maxBlockedMs }: { table: LeaseTable; maxBlockedMs: number }) {
    this.#table = table;
    this.#maxBlockedMs = maxBlockedMs;
  }

  /** Leases whose last renewal, or whose delivery, is a third of their ack-wait ago. */
  due(now: number): HeldLease[] {
    return this.alive(now).filter((lease) => {
      const tried = this.#tried.get(lease.slot);
      const since = tried?.generation === lease.generation ? tried.at : lease.confirmedAt;
      return now - since >= lease.ackWaitMs / RENEWALS_PER_ACK_WAIT;
    });
  }

  /** Leases that are still kept alive: the loop is not stuck for too long, and the attempt is within its time. */
  alive(now: number): HeldLease[] {
    if (this.blockedMs(now) > this.#maxBlockedMs) return [];
    return this.#table.held().filter((lease) => now <= lease.renewUntil);
  }

  sent({ slot, generation }: HeldLease, at: number): void {
    this.#tried.set(slot, { generation, at });
  }

  confirmed({ slot, generation }: HeldLease, sentAt: number): void {
    this.#table.confirm(slot, generation, sentAt);
  }

  unanswered({ slot, generation }: HeldLease): void {
    if (this.#tried.get(slot)?.generation === generation) this.#tried.delete(slot);
  }

  blockedMs(now: number): number {
    const late = now - this.#table.tickedAt;
    return late > TICK_TOLERANCE_MS ? late : 0;
  }
}
