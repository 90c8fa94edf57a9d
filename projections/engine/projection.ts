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

/** A table of a read model, as a rebuild moves it and a verification compares it. */
export interface Table {
  readonly name: string;
  /** The columns that tell its rows apart. */
  readonly key: readonly string[];
  /**
   * Column with the instant of storing, which TASKS alone tells: compared for the events that it still has. Of what was
   * read from HISTORY it is the instant of its storing there.
   */
  readonly storedAt?: string;
  /** SQL condition of the rows that say something: others may be there or not. */
  readonly meaningful?: string;
  /** Column with the sequence of the last event that a row reflects. */
  readonly seq?: string;
}

/** A projection whose rows are tables of its own, and of nobody else. Its SQL names them without a schema. */
export interface ReadModel<Changes = unknown> extends Projection<Changes> {
  readonly tables: readonly Table[];
}

/** How far one projection has come. The projector owns it; `seq` moves only when a transaction has committed. */
export interface Progress {
  readonly projection: Projection;
  seq: number;
}
