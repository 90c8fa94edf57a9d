import type { DeadLetterReason, Facts, TaskError } from '../../src/domain/events.ts';

/** A row of `dead_letters` as the driver gives it: bigint as text, timestamptz as Date. */
export interface LetterRow {
  readonly tenant: string;
  readonly id: string;
  readonly type: string;
  readonly state: 'open' | 'replayed' | 'discarded';
  readonly reason: DeadLetterReason;
  readonly fingerprint: string;
  readonly error: TaskError | null;
  readonly worker: string | null;
  readonly worker_version: string | null;
  readonly priority: number;
  readonly attempt: number;
  readonly round: number;
  readonly first_failed_at: Date | null;
  readonly first_dead_at: Date;
  readonly dead_at: Date;
  readonly seq: string;
  readonly settled_at: Date | null;
  readonly settled_by: string | null;
  readonly note: string | null;
  readonly facts: Facts | null;
}
