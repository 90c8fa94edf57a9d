import { setTimeout as pause } from 'node:timers/promises';
import { TaskledgerError } from '../domain/errors.ts';

const RETRY_MS = 500;

export interface Patience {
  /** How long failures that may pass are put up with. */
  readonly forMs: number;
  /** Ends the patience: the last failure is thrown. */
  readonly signal: AbortSignal;
  /** Told of each failure that is put up with. */
  readonly onFailure: (error: TaskledgerError) => void;
}

/** Does the work, again after each failure that may pass (`retryable`). Throws the last failure, or `shutting_down`. */
export async function patiently<T>(
  work: () => Promise<T>,
  { forMs, signal, onFailure }: Patience,
): Promise<T> {
  const until = performance.now() + forMs;
  for (;;) {
    if (signal.aborted) throw new TaskledgerError('shutting_down');
    try {
      return await work();
    } catch (error) {
      const passing = error instanceof TaskledgerError && error.retryable;
      if (!passing || performance.now() + RETRY_MS > until) throw error;
      onFailure(error);
    }
    await pause(RETRY_MS, undefined, { signal }).catch(() => undefined);
  }
}

const SAY_EVERY_MS = 10_000;

/** Calls `say` at once, and then at most every 10 s, however often it is asked. */
export function sparingly<T>(say: (what: T) => void): (what: T) => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  return (what) => {
    const now = performance.now();
    if (now - saidAt < SAY_EVERY_MS) return;
    saidAt = now;
    say(what);
  };
}
