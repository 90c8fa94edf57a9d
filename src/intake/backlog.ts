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

/**
 * Which types have too many tasks waiting, as the dispatcher announces it. A type is full from its limit on, until its
 * backlog has fallen to 80 % of it. A dispatcher that has been silent for SILENCE_MS blocks nobody: what it said
 * last may be long untrue.
 */
export interface Backlog extends Service {
  /** Set while submissions of the type are to be refused. */
  full(type: string): FullType | undefined;
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
}

const SILENCE_MS = 5_000;
const RESUME_AT = 0.8;

export function createBacklog({ nc, names, clock, logger, limitOf }: BacklogOptions): Backlog {
  let announced: Readonly<Record<string, number>> = {};
  let announcedAt = Number.NEGATIVE_INFINITY;
  const fullTypes = new Map<string, FullType>();
  const listeners: (() => void)[] = [];
  let subscription: Subscription | undefined;
  let watchdog: NodeJS.Timeout | undefined;

  const silent = (): boolean => clock.now() - announcedAt > SILENCE_MS;
  const open = (): void => {
    for (const listener of listeners) listener();
  };

  function receive(text: string): void {
    const waiting = waitingOf(text);
    if (waiting === undefined) {
      logger.warn({ text: text.slice(0, 200) }, 'backlog announcement is unreadable');
      return;
    }
    announced = waiting;
    announcedAt = clock.now();
    const wasFull = fullTypes.size > 0;
    for (const type of new Set([...Object.keys(waiting), ...fullTypes.keys()]))
      judge(type, waiting[type] ?? 0);
    if (wasFull && fullTypes.size === 0) open();
  }

  function judge(type: string, waiting: number): void {
    const limit = limitOf(type);
    const was = fullTypes.has(type);
    const is = waiting >= limit || (was && waiting > limit * RESUME_AT);
    if (is) fullTypes.set(type, { type, waiting, limit });
    else fullTypes.delete(type);
    if (is !== was) logger.warn({ type, waiting, limit }, is ? 'backlog is full' : 'backlog is open again');
  }

  return {
    name: 'backlog',
    async start() {
      subscription = nc.subscribe(names.backlog, {
        callback: (error, message) => {
          if (error === null) receive(message.string());
        },
      });
      watchdog = setInterval(() => {
        if (fullTypes.size === 0 || !silent()) return;
        logger.warn({ silentMs: SILENCE_MS }, 'the dispatcher is silent: submissions are let through');
        fullTypes.clear();
        open();
      }, 1_000);
      watchdog.unref();
    },
    async stop() {
      clearInterval(watchdog);
      if (subscription !== undefined && !subscription.isClosed()) subscription.unsubscribe();
      subscription = undefined;
    },
    full: (type) => (silent() ? undefined : fullTypes.get(type)),
    waiting: (type) => (silent() ? undefined : (announced[type] ?? 0)),
    anyFull: () => (silent() ? undefined : fullTypes.values().next().value),
    onOpen: (listener) => listeners.push(listener),
  };
}

function waitingOf(text: string): Readonly<Record<string, number>> | undefined {
  try {
    const { waiting } = JSON.parse(text) as { waiting?: unknown };
    return typeof waiting === 'object' && waiting !== null ? (waiting as Record<string, number>) : undefined;
  } catch {
    return undefined;
  }
}
