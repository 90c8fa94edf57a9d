import type { Tenant } from '../../../src/registry/tenants.ts';
import type { TypeSettings } from '../../../src/registry/type-settings.ts';
import type { ConcurrencyLimit } from '../checker/evidence.ts';

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
  /** After it could run for the first time. */
  readonly deadlineInMs?: number;
  readonly orderingKey?: string;
  readonly concurrencyKey?: string;
  readonly version?: number;
  /** The client asks for its cancellation this long after it was accepted. */
  readonly cancelAfterMs?: number;
  /** How it is submitted: HTTP, alone or among others, trusted submitter, or a message to the gateway. */
  readonly via: 'http' | 'batch' | 'log' | 'message';
}

export const TENANTS = ['acme', 'zeta', 'omega'] as const;
/** Few enough to be reached, enough for what comes. */
export const TENANT_SETTINGS: Readonly<
  Record<(typeof TENANTS)[number], Pick<Tenant, 'weight' | 'limits' | 'types'>>
> = {
  acme: { weight: 3, types: { notify: { concurrency: 5 } } },
  zeta: { limits: { ratePerSecond: 50, burst: 20 } },
  omega: { limits: { concurrency: 4 } },
};
/** One type for each kind of policy. */
export const TYPES: Readonly<Record<string, Omit<TypeSettings, 'type'>>> = {
  encode: { policy: { backoff: { kind: 'fixed', baseMs: 500 } }, concurrencyKeyLimit: 2 },
  probe: {
    policy: { maxRetries: 1, backoff: { kind: 'fixed', baseMs: 300 }, jitter: 'none' },
    concurrency: 8,
  },
  notify: {
    policy: { maxRetries: 6, backoff: { kind: 'exponential', baseMs: 200, factor: 2 }, backoffCapMs: 2_000 },
  },
};
/** What the settings above bound. */
export const LIMITS: readonly ConcurrencyLimit[] = [
  { tenant: 'omega', max: 4 },
  { tenant: 'acme', type: 'notify', max: 5 },
  { type: 'probe', max: 8 },
  { type: 'encode', eachKey: true, max: 2 },
];
/** The type whose contract changes in the course of a run. */
export const VERSIONED = 'encode';
const ORDERED = 'notify';
const KEYED = 'encode';
const KEYS = 5;
/** Longer than the lease of a chaos stand: such an attempt lives by its heartbeats. */
const LONG_MS = 8_000;

/** The next task of the load, submitted while this release is rolled out. `dice` is uniform in [0, 1). */
export function drawTask(dice: () => number, release: number): LoadTask {
  const pick = <T>(items: readonly T[]): T => items[Math.floor(dice() * items.length)] as T;
  // A third of the load comes from one tenant in any case.
  const tenant = dice() < 0.33 ? TENANTS[0] : pick(TENANTS);
  const type = pick(Object.keys(TYPES));
  const via = dice();
  const cancelled = dice() < 0.04;
  const delayed = dice() < 0.1;
  const mortal = dice() < 0.03;
  const keyed = dice() < 0.2;
  const key = `key-${Math.floor(dice() * KEYS)}`;
  return {
    tenant,
    type,
    payload: drawWish(dice),
    priority: 1 + Math.floor(dice() * 4),
    ...(delayed ? { delayMs: Math.round(dice() * 12_000) } : {}),
    // One that is sent late, because the way was cut, must not be refused for it.
    ...(mortal && !delayed ? { deadlineInMs: Math.round(1_000 + dice() * 15_000) } : {}),
    ...(keyed && type === ORDERED ? { orderingKey: key } : {}),
    ...(keyed && type === KEYED ? { concurrencyKey: key } : {}),
    ...(type === VERSIONED && dice() < 0.5 ? { version: release } : {}),
    ...(cancelled ? { cancelAfterMs: Math.round(dice() * 3_000) } : {}),
    via: via < 0.45 ? 'http' : via < 0.55 ? 'batch' : via < 0.8 ? 'log' : 'message',
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
