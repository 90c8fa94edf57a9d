import type { Tenant } from '../../../src/registry/tenants.ts';
import type { TypeSettings } from '../../../src/registry/type-settings.ts';
import type { ConcurrencyLimit, DispatchRate, IntakeRate } from '../checker/evidence.ts';

/** What a task of the load asks its worker to do; its payload. */
export interface Wish {
  /** The attempts up to this one do as `bad` says, the later ones end well. */
  readonly badAttempts: number;
  /** `crash` ends the worker's process, and `hopeless` is an error that no retry helps. */
  readonly bad: 'fail' | 'crash' | 'hopeless';
  readonly ms: number;
  /** Of a submission that is joined with others of its key: tells whose payload it is. */
  readonly mark?: string;
}

/** Of submissions that become one task. */
export interface JoinKey {
  readonly by: 'throttle' | 'debounce';
  readonly key: string;
  readonly windowMs: number;
  /** Of a debounce key. */
  readonly maxWaitMs?: number;
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
  readonly join?: JoinKey;
  /** The client asks for its cancellation this long after it was accepted. */
  readonly cancelAfterMs?: number;
  /** How it is submitted: HTTP, alone or among others, trusted submitter, or a message to the gateway. */
  readonly via: 'http' | 'batch' | 'log' | 'message';
}

export const TENANTS = ['acme', 'zeta', 'omega'] as const;
/** Few enough to be reached, enough for what comes. */
export const TENANT_SETTINGS: Readonly<
  Record<(typeof TENANTS)[number], Pick<Tenant, 'weight' | 'limits' | 'submission' | 'types'>>
> = {
  acme: { weight: 3, types: { notify: { concurrency: 5 } } },
  // What comes in is bounded, so that what may start is enough for it at any load.
  zeta: { limits: { ratePerSecond: 4, burst: 3 }, submission: { ratePerSecond: 1.2, burst: 4 } },
  omega: { limits: { concurrency: 4 }, types: { probe: { ratePerSecond: 3, burst: 2 } } },
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
export const RATES: readonly DispatchRate[] = [
  { tenant: 'zeta', ratePerSecond: 4, burst: 3 },
  { tenant: 'omega', type: 'probe', ratePerSecond: 3, burst: 2 },
];
export const INTAKE_RATES: readonly Omit<IntakeRate, 'processes'>[] = [
  { tenant: 'zeta', ratePerSecond: 1.2, burst: 4 },
];
/** The type whose contract changes in the course of a run. */
export const VERSIONED = 'encode';
const ORDERED = 'notify';
const KEYED = 'encode';
const KEYS = 5;
const THROTTLED = { type: 'notify', windowMs: 4_000 };
const DEBOUNCED = { type: 'probe', windowMs: 1_500, maxWaitMs: 5_000 };
/** Submissions of a key that come close together. */
export const JOINED_AT_MOST = 4;
export const JOINED_WITHIN_MS = 1_500;
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
  const join = dice() < 0.06 ? drawJoin(dice) : undefined;
  const key = `key-${Math.floor(dice() * KEYS)}`;
  if (join !== undefined)
    return {
      tenant,
      type: join.by === 'throttle' ? THROTTLED.type : DEBOUNCED.type,
      payload: drawWish(dice),
      priority: 1 + Math.floor(dice() * 4),
      join,
      via: doorOf(via),
    };
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
    via: doorOf(via),
  };
}

const doorOf = (dice: number): LoadTask['via'] =>
  dice < 0.45 ? 'http' : dice < 0.55 ? 'batch' : dice < 0.8 ? 'log' : 'message';

function drawJoin(dice: () => number): JoinKey {
  if (dice() < 0.5) return { by: 'throttle', key: 'once', windowMs: THROTTLED.windowMs };
  const { windowMs, maxWaitMs } = DEBOUNCED;
  return { by: 'debounce', key: 'last', windowMs, maxWaitMs };
}

/** Another submission of the same key, by whatever door. */
export const drawAgain = (dice: () => number, { payload: _payload, ...task }: LoadTask): LoadTask => ({
  ...task,
  payload: drawWish(dice),
  via: doorOf(dice()),
});

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
