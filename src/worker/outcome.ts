import type { DeadLetterReason, TaskError } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import { type AbortCause, AttemptAborted } from './attempt-aborted.ts';
import type { Runnable } from './handler.ts';
import { NotRetryable } from './not-retryable.ts';
import { type ResultLimits, storableResult } from './result.ts';
import { describeThrown } from './task-error.ts';

/** How an attempt ended. `released`: the worker gives it up by itself, so that it goes back at once. */
export type Outcome =
  | { readonly status: 'completed'; readonly result: Json | undefined }
  | { readonly status: 'failed'; readonly error: TaskError; readonly final?: DeadLetterReason }
  | { readonly status: 'cancelled' }
  | { readonly status: 'released'; readonly reason: 'shutdown' }
  | { readonly status: 'lost'; readonly reason: LostCause };

/** `superseded`: the log says that the attempt is over. `lease_expired`: the lease is gone, and nobody has taken over yet. */
export type LostCause = 'superseded' | 'lease_expired';

/** How a handler ended: it returned, it threw, or it was given up after its abort signal. */
export type Ending =
  | { readonly kind: 'returned'; readonly value: unknown }
  | { readonly kind: 'threw'; readonly thrown: unknown }
  | { readonly kind: 'given_up' };

/**
 * The outcome of an attempt. A returned value counts even after an abort: the work is done, and the fence decides
 * whether it still may be told. A throw after an abort is taken as obedience to it.
 */
export function outcomeOf(
  ending: Ending,
  abort: AbortCause | undefined,
  runnable: Pick<Runnable, 'parseResult'>,
  limits: ResultLimits,
): Outcome {
  if (ending.kind === 'returned') return returned(ending.value, runnable, limits);
  if (abort !== undefined) return aborted(abort);
  return ending.kind === 'threw' ? threw(ending.thrown) : aborted('timeout');
}

function returned(value: unknown, runnable: Pick<Runnable, 'parseResult'>, limits: ResultLimits): Outcome {
  let parsed: ReturnType<Runnable['parseResult']>;
  try {
    parsed = runnable.parseResult(value);
  } catch (error) {
    return notRetryable('InvalidResult', 'result_invalid', describeThrown(error).message);
  }
  if (!parsed.ok) return notRetryable('InvalidResult', 'result_invalid', parsed.reason);
  const stored = storableResult(parsed.value, limits);
  return stored.ok
    ? { status: 'completed', result: stored.value }
    : notRetryable('InvalidResult', 'result_invalid', `The result ${stored.reason}`);
}

function threw(thrown: unknown): Outcome {
  const error = describeThrown(thrown);
  return thrown instanceof NotRetryable
    ? { status: 'failed', error, final: 'not_retryable' }
    : { status: 'failed', error };
}

function aborted(cause: AbortCause): Outcome {
  switch (cause) {
    case 'timeout':
      return { status: 'failed', error: abortError(cause) };
    case 'deadline':
      return { status: 'failed', error: abortError(cause), final: 'deadline' };
    case 'cancelled':
      return { status: 'cancelled' };
    case 'superseded':
    case 'lease_expired':
      return { status: 'lost', reason: cause };
    case 'shutdown':
      return { status: 'released', reason: cause };
    default:
      return cause satisfies never;
  }
}

function abortError(cause: AbortCause): TaskError {
  const { name, message, code } = new AttemptAborted(cause);
  return { name, message, code };
}

/** A failure that no retry can mend, found by the worker itself. */
export const notRetryable = (name: string, code: string, message: string): Outcome => ({
  status: 'failed',
  error: describeThrown(Object.assign(new Error(message), { name, code, stack: undefined })),
  final: 'not_retryable',
});
