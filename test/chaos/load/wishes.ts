import type { PolicyOverride } from '../../../src/domain/policy.ts';

/** What a task of the load asks its worker to do; its payload. */
export interface Wish {
  /** The attempts up to this one do as `bad` says, the later ones end well. */
  readonly badAttempts: number;
  /** `crash` ends the worker's process, and `hopeless` is an error that no retry helps. */
  readonly bad: 'fail' | 'crash' | 'hopeless';
  readonly ms: number;
}

export interface LoadTask {
  readonly tenant: string;
  readonly type: string;
  readonly payload: Wish;
  readonly priority: number;
  readonly delayMs?: number;
  /** The client asks for its cancellation this long after it was accepted. */
  readonly cancelAfterMs?: number;
  /** How it is submitted: HTTP, trusted submitter, or a message to the gateway. */
  readonly via: 'http' | 'log' | 'message';
}

export const TENANTS = ['acme', 'zeta', 'omega'] as const;
/** One type for each kind of policy. */
export const TYPES: Readonly<Record<string, PolicyOverride>> = {
  encode: { backoff: { kind: 'fixed', baseMs: 500 } },
  probe: { maxRetries: 1, backoff: { kind: 'fixed', baseMs: 300 }, jitter: 'none' },
  notify: { maxRetries: 6, backoff: { kind: 'exponential', baseMs: 200, factor: 2 }, backoffCapMs: 2_000 },
};
/** Longer than the lease of a chaos stand: such an attempt lives by its heartbeats. */
const LONG_MS = 8_000;

/** The next task of the load. `dice` is uniform in [0, 1). */
export function drawTask(dice: () => number): LoadTask {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(dice() * items.length)] as T;
  // A third of the load comes from one tenant in any case.
  const tenant = dice() < 0.33 ? TENANTS[0] : pick(TENANTS);
  const via = dice();
  const cancelled = dice() < 0.04;
  const delayed = dice() < 0.1;
  return {
    tenant,
    type: pick(Object.keys(TYPES)),
    payload: drawWish(dice),
    priority: 1 + Math.floor(dice() * 4),
    ...(delayed ? { delayMs: Math.round(dice() * 12_000) } : {}),
    ...(cancelled ? { cancelAfterMs: Math.round(dice() * 3_000) } : {}),
    via: via < 0.6 ? 'http' : via < 0.85 ? 'log' : 'message',
  };
}

function drawWish(dice: () => number): Wish {
  const what = dice();
  const ms = Math.round(5 + dice() * 150);
  if (what < 0.76) return { badAttempts: 0, bad: 'fail', ms };
  if (what < 0.9) return { badAttempts: 1 + Math.floor(dice() * 4), bad: 'fail', ms };
  if (what < 0.94) return { badAttempts: 0, bad: 'fail', ms: Math.round(LONG_MS * (0.3 + dice())) };
  if (what < 0.97) return { badAttempts: 9, bad: 'hopeless', ms };
  if (what < 0.994) return { badAttempts: 9, bad: 'fail', ms };
  return { badAttempts: 1, bad: 'crash', ms };
}
