import type { Clock } from '../platform/clock.ts';

export interface RateVerdict {
  readonly allowed: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** Seconds until a request is allowed again, rounded up; 0 when one is allowed now. */
  readonly retryAfterS: number;
}

/**
 * A token bucket for each API key, in this process alone: it protects the process, it is no quota of a tenant.
 * A bucket holds one second's worth of requests. Only verified keys get one, so there are no more than keys.
 * `clock`: a monotonic one.
 */
export function createRateLimit({ ratePerSecond, clock }: { ratePerSecond: number; clock: Clock }) {
  const buckets = new Map<string, { tokens: number; at: number }>();
  return (key: string): RateVerdict => {
    const now = clock.now();
    const bucket = buckets.get(key) ?? { tokens: ratePerSecond, at: now };
    buckets.set(key, bucket);
    const refilled = ((now - bucket.at) / 1_000) * ratePerSecond;
    bucket.tokens = Math.min(ratePerSecond, bucket.tokens + refilled);
    bucket.at = now;
    const allowed = bucket.tokens >= 1;
    if (allowed) bucket.tokens -= 1;
    return {
      allowed,
      limit: ratePerSecond,
      remaining: Math.floor(bucket.tokens),
      retryAfterS: allowed ? 0 : Math.ceil((1 - bucket.tokens) / ratePerSecond),
    };
  };
}
