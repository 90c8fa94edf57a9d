import { z } from 'zod';
import { TaskKeySchema } from '../domain/events.ts';
import { type Issue, issue } from './issue.ts';
import { checkText } from './json-check.ts';

const windowMs = z.int().min(1);

export const ThrottleSchema = z
  .strictObject({ key: TaskKeySchema, windowMs })
  .describe(
    'At most one task for each key and window: the first submission makes it, the others in the window are answered with its id. Windows are cut from the time line at multiples of windowMs (servers, UTC)',
  );
export const DebounceSchema = z
  .strictObject({ key: TaskKeySchema, windowMs, maxWaitMs: z.int().min(1).optional() })
  .describe(
    'Waits until the key has not been submitted for windowMs, and runs once with the last payload and priority; the time is pushed no further than maxWaitMs after the first submission (10 windows when absent)',
  );

/** Many submissions of one key that become one task. */
export type Window =
  | { readonly kind: 'throttle'; readonly key: string; readonly windowMs: number }
  | {
      readonly kind: 'debounce';
      readonly key: string;
      readonly windowMs: number;
      readonly maxWaitMs: number;
    };

const DEFAULT_WAIT_WINDOWS = 10;

export interface WindowInput {
  readonly throttle?: z.infer<typeof ThrottleSchema> | undefined;
  readonly debounce?: z.infer<typeof DebounceSchema> | undefined;
}

/** The window that a valid input asks for. */
export function windowOf({ throttle, debounce }: WindowInput, longestMs: number): Window | undefined {
  if (throttle !== undefined) return { kind: 'throttle', ...throttle };
  if (debounce === undefined) return undefined;
  const maxWaitMs = debounce.maxWaitMs ?? Math.min(DEFAULT_WAIT_WINDOWS * debounce.windowMs, longestMs);
  return { kind: 'debounce', key: debounce.key, windowMs: debounce.windowMs, maxWaitMs };
}

/** What does not go together, and what the log does not remember long enough. `hasKey`: an idempotency key was given. */
export function checkWindow(
  raw: Readonly<Record<string, unknown>>,
  { longestMs, hasKey }: { readonly longestMs: number; readonly hasKey: boolean },
): Issue[] {
  const { throttle, debounce, runAt, delayMs } = raw;
  if (throttle === undefined && debounce === undefined) return [];
  const field = throttle === undefined ? 'debounce' : 'throttle';
  const issues: Issue[] = [];
  const refuse = (at: string, reason: string): void => {
    issues.push(issue('request_invalid', { field: at, reason }));
  };
  if (throttle !== undefined && debounce !== undefined)
    refuse('debounce', 'Send throttle or debounce, not both');
  if (hasKey)
    refuse(
      field,
      `The key of ${field} says which task it is: send no idempotency key (id, Idempotency-Key) beside it`,
    );
  if (debounce !== undefined && (runAt !== undefined || delayMs !== undefined))
    refuse('debounce', 'debounce sets the time: send neither runAt nor delayMs beside it');
  const {
    key,
    windowMs: length,
    maxWaitMs,
  } = (throttle ?? debounce ?? {}) as Readonly<Record<string, unknown>>;
  const unfit = typeof key === 'string' ? checkText(key, `${field}.key`) : undefined;
  if (unfit !== undefined) issues.push(unfit);
  for (const [name, ms] of Object.entries({ windowMs: length, maxWaitMs }))
    if (typeof ms === 'number' && ms > longestMs)
      refuse(
        `${field}.${name}`,
        `${name} must be at most ${longestMs}, the time that the log remembers tasks for`,
      );
  if (typeof length === 'number' && typeof maxWaitMs === 'number' && maxWaitMs < length)
    refuse('debounce.maxWaitMs', 'maxWaitMs must not be shorter than windowMs');
  return issues;
}
