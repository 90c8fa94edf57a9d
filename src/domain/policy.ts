import { z } from 'zod';

/** Delays before a retry. `baseMs`, `capMs` and `delaysMs` are milliseconds; a `list` repeats its last entry. */
export const BackoffSchema = z.discriminatedUnion('kind', [
  z.strictObject({
    kind: z.literal('exponential'),
    baseMs: z.int().min(1).default(1_000),
    factor: z.number().min(1).max(10).default(2),
  }),
  z.strictObject({ kind: z.literal('linear'), baseMs: z.int().min(1).default(1_000) }),
  z.strictObject({ kind: z.literal('fixed'), baseMs: z.int().min(1).default(1_000) }),
  z.strictObject({ kind: z.literal('list'), delaysMs: z.array(z.int().min(0)).min(1).max(32) }),
]);
export type Backoff = z.infer<typeof BackoffSchema>;

/** How a type's attempts are retried and bounded. A type has one; a task may override parts of it. */
export const PolicySchema = z.strictObject({
  /** Retries after the first attempt, so attempts = maxRetries + 1. */
  maxRetries: z.int().min(0).max(100),
  /** Attempts of a round that may end in a lost lease; one more, and the task is poison. */
  maxLost: z.int().min(0).max(100),
  backoff: BackoffSchema,
  /** No delay is longer than this. */
  backoffCapMs: z
    .int()
    .min(1)
    .max(7 * 86_400_000),
  /** No delay is shorter: a retry is delayed, never immediate. */
  backoffFloorMs: z.int().min(0).max(60_000),
  /** `full`: uniform between floor and the computed delay. */
  jitter: z.enum(['full', 'none']),
  /** An attempt is aborted after this long. */
  timeoutMs: z
    .int()
    .min(1)
    .max(7 * 86_400_000),
  /** Error names or codes that end the task at once. */
  notRetryable: z.array(z.string().min(1).max(200)).max(100),
});
export type Policy = z.infer<typeof PolicySchema>;
export const PolicyOverrideSchema = PolicySchema.partial();
/** What an event records: only what differs from DEFAULT_POLICY. */
export type PolicyOverride = { readonly [K in keyof Policy]?: Policy[K] | undefined };

/** Part of event schema version 1: changing a value here needs a new event version and an upcast. */
export const DEFAULT_POLICY: Policy = Object.freeze({
  maxRetries: 3,
  maxLost: 3,
  backoff: Object.freeze({ kind: 'exponential', baseMs: 1_000, factor: 2 } as const),
  backoffCapMs: 600_000,
  backoffFloorMs: 100,
  jitter: 'full',
  timeoutMs: 900_000,
  notRetryable: [],
});

export const resolvePolicy = (override: PolicyOverride | undefined): Policy =>
  override === undefined ? DEFAULT_POLICY : { ...DEFAULT_POLICY, ...dropUndefined(override) };

/** The parts of a policy that differ from the default, or undefined when none does: keeps events small. */
export function policyOverride(policy: PolicyOverride): PolicyOverride | undefined {
  const differing = Object.entries(dropUndefined(policy)).filter(
    ([key, value]) => JSON.stringify(value) !== JSON.stringify(DEFAULT_POLICY[key as keyof Policy]),
  );
  return differing.length === 0 ? undefined : (Object.fromEntries(differing) as PolicyOverride);
}

function dropUndefined(override: PolicyOverride): Partial<Policy> {
  return Object.fromEntries(
    Object.entries(override).filter(([, value]) => value !== undefined),
  ) as Partial<Policy>;
}

/**
 * The delay before retry number `retry` (1 for the first), in milliseconds.
 * `dice` is uniform in [0, 1) and passed in, so that the same inputs always give the same delay.
 */
export function backoffMs(policy: Policy, retry: number, dice: number): number {
  const raw = Math.min(policy.backoffCapMs, rawDelayMs(policy.backoff, retry));
  const floor = Math.min(policy.backoffFloorMs, policy.backoffCapMs);
  if (policy.jitter === 'none') return Math.round(Math.max(floor, raw));
  return Math.round(floor + dice * Math.max(0, raw - floor));
}

function rawDelayMs(backoff: Backoff, retry: number): number {
  switch (backoff.kind) {
    case 'exponential':
      return backoff.baseMs * backoff.factor ** (retry - 1);
    case 'linear':
      return backoff.baseMs * retry;
    case 'fixed':
      return backoff.baseMs;
    case 'list':
      return backoff.delaysMs[Math.min(retry, backoff.delaysMs.length) - 1] ?? 0;
    default:
      return backoff satisfies never;
  }
}
