import type pg from 'pg';
import type { Recorded } from '../../src/domain/events.ts';

/**
 * A read model. The engine calls `apply`, then `prepare`, then `write` inside the transaction that also moves the
 * checkpoint, so each event is applied exactly once. A later batch never comes before an earlier one.
 */
export interface Projection<Changes = unknown> {
  /** Names the checkpoint and the position's subject: never changes. */
  readonly name: string;
  /** Pure: what the events change. Where a batch ends must not matter to the rows that result. */
  apply(batch: readonly Recorded[]): Changes;
  /** Outside the transaction, before it: makes room for the changes, such as a partition. May happen more than once. */
  prepare?(client: pg.ClientBase, changes: Changes): Promise<void>;
  /** Inside the transaction. */
  write(client: pg.ClientBase, changes: Changes): Promise<void>;
  /** Housekeeping, at start and then hourly, by the projector that leads. `now` in ms since 1970. */
  maintain?(client: pg.ClientBase, now: number): Promise<void>;
}

/** How far one projection has come. The projector owns it; `seq` moves only when a transaction has committed. */
export interface Progress {
  readonly projection: Projection;
  seq: number;
}
