import { TaskledgerError } from '../domain/errors.ts';

/** What JetStream answers. Throws `log_unavailable` in place of whatever the client throws; our own errors pass. */
export async function orUnavailable<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (cause) {
    if (cause instanceof TaskledgerError) throw cause;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new TaskledgerError('log_unavailable', { reason }, { cause });
  }
}
