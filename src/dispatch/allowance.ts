import type { ScopedPause } from '../registry/controls.ts';
import type { TokenBucket } from './token-bucket.ts';

/** Why nothing may start: bits of `Allowance.blocks`. */
export const Block = { paused: 1, concurrency: 2, rate: 4, newLeader: 8 } as const;

/** What somebody may have running: a type, a tenant, or a tenant in one type. Its Ledger alone changes it. */
export class Allowance {
  /** Tasks that hold a slot: from the decision to queue (or QUEUED, in the log) until the attempt ends. */
  taken = 0;
  /** Those of them that the log has yet to say were queued: each will take a token then. */
  promised = 0;
  limit = Number.POSITIVE_INFINITY;
  bucket: TokenBucket | undefined;
  pause: ScopedPause | undefined;
  /** See Block; 0 when something may start. */
  blocks = 0;
  /** When it must be looked at again (ms since 1970). */
  wakeAt = Number.POSITIVE_INFINITY;

  /** Whether anything at all can block it. */
  get bounded(): boolean {
    return this.limit !== Number.POSITIVE_INFINITY || this.bucket !== undefined || this.pause !== undefined;
  }
}
