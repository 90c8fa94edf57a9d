import { setTimeout as delay } from 'node:timers/promises';

export interface EventuallyOptions {
  /** How long to keep trying, in ms. */
  readonly timeoutMs?: number;
  /** Pause between two tries, in ms. */
  readonly intervalMs?: number;
}

/**
 * Calls `attempt` until it neither throws nor answers `false`, and returns its answer: a block of `expect` calls
 * (no answer) succeeds when none throws; a look-up says `?? false` for what is not there yet.
 * For conditions that have no signal to await. How long it tries is patience, never a claim: only what will not come is
 * waited for so long. Fails with the last error or answer it saw.
 */
export async function eventually<T>(
  attempt: () => T | Promise<T>,
  { timeoutMs = 30_000, intervalMs = 20 }: EventuallyOptions = {},
): Promise<Exclude<T, false>> {
  const startedAt = Date.now();
  let tries = 0;
  let last: { readonly error: unknown } | { readonly answer: unknown };
  do {
    if (tries > 0) await delay(intervalMs);
    tries += 1;
    try {
      const answer = await attempt();
      if (isAnswer(answer)) return answer;
      last = { answer };
    } catch (error) {
      last = { error };
    }
  } while (Date.now() - startedAt < timeoutMs);
  const seen =
    'error' in last
      ? `the last error was: ${messageOf(last.error)}`
      : `the last answer was: ${String(last.answer)}`;
  const failure = `Still not so after ${Date.now() - startedAt} ms and ${tries} tries; ${seen}`;
  throw new Error(failure, 'error' in last ? { cause: last.error } : {});
}

const isAnswer = <T>(answer: T): answer is Exclude<T, false> => answer !== false;

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
