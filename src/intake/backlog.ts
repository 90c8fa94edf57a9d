import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import type { Service } from '../platform/service.ts';

export interface FullType {
  readonly type: string;
  readonly waiting: number;
  readonly limit: number;
}

export interface FullTenant {
  readonly tenant: string;
  readonly waiting: number;
  readonly limit: number;
}

/**
 * Which types have too many tasks waiting, as the dispatcher announces it. A type is full from its limit on, until its
 * backlog has fallen to 80 % of it. A dispatcher that has been silent for SILENCE_MS blocks nobody: what it said
 * last may be long untrue.
 */
export interface Backlog extends Service {
  /** Set while submissions of the type are to be refused. */
  full(type: string): FullType | undefined;
  /** Set while submissions of a tenant with a `maxBacklog` are to be refused. */
  fullTenant(tenant: string): FullTenant | undefined;
  /** Set while delayed submissions of the type are to be refused: those that wait for a time are counted apart. */
  fullDelayed(type: string): FullType | undefined;
  /** Tasks of a type that wait for a time, likewise. */
  delayed(type: string): number | undefined;
  /** Waiting tasks of a type as last announced, or undefined when the dispatcher is silent. */
  waiting(type: string): number | undefined;
  /** Any full type: the gateway pulls nothing meanwhile. */
  anyFull(): FullType | undefined;
  /** Called when the last full type is full no more. */
  onOpen(listener: () => void): void;
}

interface BacklogOptions {
  readonly nc: Pick<NatsConnection, 'subscribe'>;
  readonly names: Pick<Names, 'backlog'>;
  /** Monotonic: it only tells how long the dispatcher has been silent. */
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limitOf: (type: string) => number;
  /** Of each type; none when absent. */
  readonly delayedLimit?: number;
  /** Undefined for a tenant without a limit of its own. */
  readonly tenantLimitOf?: (tenant: string) => number | undefined;
}

const SILENCE_MS = 5_000;
/** Of its limit: what a full backlog must have fallen to before it is open again. */
export const RESUME_AT = 0.8;

/** From the limit on, until it is down to RESUME_AT of it. */
export const isFull = ({ waiting, limit }: Level, was: boolean): boolean =>
  waiting >= limit || (was && waiting > limit * RESUME_AT);

export function createBacklog(options: BacklogOptions): Backlog {
  const { nc, names, clock, logger, limitOf, delayedLimit, tenantLimitOf = () => undefined } = options;
  const types = new Levels(limitOf);
  const tenants = new Levels(tenantLimitOf);
  const delayed = new Levels(() => delayedLimit);
  const all = [types, tenants, delayed];
  let announcedAt = Number.NEGATIVE_INFINITY;
  const listeners: (() => void)[] = [];
  let subscription: Subscription | undefined;
  let watchdog: NodeJS.Timeout | undefined;

  const silent = (): boolean => clock.now() - announcedAt > SILENCE_MS;
  const full = (type: string): FullType | undefined => {
    const level = silent() ? undefined : types.full(type);
    return level && { type, ...level };
  };
  const open = (): void => {
    for (const listener of listeners) listener();
  };

  function receive(text: string): void {
    const announced = announcedIn(text);
    if (announced === undefined) {
      logger.warn({ text: text.slice(0, 200) }, 'backlog announcement is unreadable');
      return;
    }
    announcedAt = clock.now();
    const wasFull = types.any() !== undefined;
    for (const { name, ...level } of types.judge(announced.waiting)) tell({ type: name, ...level });
    for (const { name, ...level } of tenants.judge(announced.tenants)) tell({ tenant: name, ...level });
    for (const { name, waiting, ...level } of delayed.judge(announced.delayed))
      tell({ type: name, delayed: waiting, ...level });
    if (wasFull && types.any() === undefined) open();
  }

  const tell = ({ full, ...fields }: { full: boolean; [field: string]: unknown }): void =>
    logger.warn(fields, full ? 'backlog is full' : 'backlog is open again');

  return {
    name: 'backlog',
    async start() {
      subscription = nc.subscribe(names.backlog, {
        callback: (error, message) => {
          if (error === null) receive(message.string());
        },
      });
      watchdog = setInterval(() => {
        if (all.every((levels) => levels.any() === undefined) || !silent()) return;
        logger.warn({ silentMs: SILENCE_MS }, 'the dispatcher is silent: submissions are let through');
        for (const levels of all) levels.clear();
        open();
      }, 1_000);
      watchdog.unref();
    },
    async stop() {
      clearInterval(watchdog);
      if (subscription !== undefined && !subscription.isClosed()) subscription.unsubscribe();
      subscription = undefined;
    },
    full,
    fullTenant(tenant) {
      const level = silent() ? undefined : tenants.full(tenant);
      return level && { tenant, ...level };
    },
    fullDelayed(type) {
      const level = silent() ? undefined : delayed.full(type);
      return level && { type, ...level };
    },
    delayed: (type) => (silent() ? undefined : delayed.waiting(type)),
    waiting: (type) => (silent() ? undefined : types.waiting(type)),
    anyFull() {
      const type = silent() ? undefined : types.any();
      return type === undefined ? undefined : full(type);
    },
    onOpen: (listener) => listeners.push(listener),
  };
}

interface Level {
  readonly waiting: number;
  readonly limit: number;
}

/** A name that has become full, or open again. */
interface Turn extends Level {
  readonly name: string;
  readonly full: boolean;
}

/** What waits by name, and which names are full. */
class Levels {
  readonly #limitOf: (name: string) => number | undefined;
  readonly #full = new Map<string, Level>();
  #waiting: Readonly<Record<string, number>> = {};

  constructor(limitOf: (name: string) => number | undefined) {
    this.#limitOf = limitOf;
  }

  judge(waiting: Readonly<Record<string, number>>): Turn[] {
    this.#waiting = waiting;
    const turns: Turn[] = [];
    for (const name of new Set([...Object.keys(waiting), ...this.#full.keys()])) {
      const level = { waiting: waiting[name] ?? 0, limit: this.#limitOf(name) ?? Number.POSITIVE_INFINITY };
      const was = this.#full.has(name);
      const full = isFull(level, was);
      if (full) this.#full.set(name, level);
      else this.#full.delete(name);
      if (full !== was) turns.push({ name, ...level, full });
    }
    return turns;
  }

  full(name: string): Level | undefined {
    return this.#full.get(name);
  }

  any(): string | undefined {
    return this.#full.keys().next().value;
  }

  waiting(name: string): number {
    return this.#waiting[name] ?? 0;
  }

  clear(): void {
    this.#full.clear();
  }
}

type Counts = Readonly<Record<string, number>>;

function announcedIn(text: string): Readonly<Record<'waiting' | 'tenants' | 'delayed', Counts>> | undefined {
  const isCounts = (value: unknown): value is Counts => typeof value === 'object' && value !== null;
  try {
    const said = JSON.parse(text) as Partial<Record<'waiting' | 'tenants' | 'delayed', unknown>>;
    const { waiting, tenants = {}, delayed = {} } = said;
    return isCounts(waiting) && isCounts(tenants) && isCounts(delayed)
      ? { waiting, tenants, delayed }
      : undefined;
  } catch {
    return undefined;
  }
}
