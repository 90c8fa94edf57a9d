import { TaskledgerError } from '../domain/errors.ts';
import { type Issue, type Reason, reasonOf } from './issue.ts';

/**
 * What became of a submission. `replayed`: the task existed already; id, status and seq are those of its first event.
 * `deduplicated`: the submission made no task of its own, because its throttle or debounce key had one; `seq` is that
 * of the event that says so. On failure nothing was written, except when the code is `log_unavailable`: then the
 * write may have happened, and the same key tells.
 */
export type SubmitOutcome =
  | Accepted
  | {
      readonly ok: false;
      readonly error: TaskledgerError;
      /** Everything that is wrong; `error` is the first of them. */
      readonly reasons: readonly Reason[];
    };

export interface Accepted {
  readonly ok: true;
  readonly id: string;
  readonly status: 'INGESTED';
  readonly seq: number;
  readonly replayed: boolean;
  readonly deduplicated?: 'throttle' | 'debounce';
}

export const accepted = (id: string, seq: number): Accepted => ({
  ok: true,
  id,
  status: 'INGESTED',
  seq,
  replayed: false,
});

export function refused(issues: readonly Issue[]): SubmitOutcome {
  const error = issues[0]?.error ?? new TaskledgerError('internal');
  return { ok: false, error, reasons: issues.map(reasonOf) };
}

export const refusedBy = (error: TaskledgerError): SubmitOutcome => ({
  ok: false,
  error,
  reasons: [{ code: error.code, message: error.message }],
});

/** Errors of the catalogue as outcomes; a defect is thrown on. */
export async function outcomeOf(work: () => Promise<SubmitOutcome>): Promise<SubmitOutcome> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof TaskledgerError) return refusedBy(error);
    throw error;
  }
}
