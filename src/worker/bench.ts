import { randomUUID } from 'node:crypto';
import type { Actor } from '../domain/events.ts';
import type { EventLog } from '../log/event-log.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import type { Attempt } from './attempt.ts';
import { type Delivery, nak } from './delivery.ts';
import type { Runnable } from './handler.ts';
import type { Counters, WorkerHooks } from './hooks.ts';
import type { LeaseKeeper } from './lease-keeper.ts';
import type { Standing } from './redelivery.ts';
import type { ResultLimits } from './result.ts';
import type { OutcomeKeeper } from './spool/spool.ts';

/** What the steps of an attempt work with. */
export interface Bench {
  readonly log: Pick<EventLog, 'append' | 'readState' | 'readTask' | 'readEvent'>;
  readonly actor: Actor;
  /** Release of the code, for its failures. */
  readonly workerVersion?: string | undefined;
  readonly clock: Clock;
  /** Uniform in [0, 1). */
  dice(): number;
  readonly runnables: ReadonlyMap<string, Runnable>;
  readonly leases: Pick<LeaseKeeper, 'take' | 'release' | 'setRenewUntil' | 'showProgress'>;
  readonly ackWaitMs: (type: string) => number;
  /** Attempts whose lease this worker keeps, by attemptKey. */
  readonly active: Map<string, Attempt>;
  /** What the registry says of the worker that holds an attempt. */
  standingOf(workerId: string, attemptKey: string): Promise<Standing>;
  /** Publishes to an ack subject; not answered, and lost without harm. */
  tell(ackSubject: string, word: string): void;
  readonly abortGraceMs: number;
  /** How often a long attempt announces its task again: well within the hot window. */
  readonly carryEveryMs: number;
  readonly resultLimits: ResultLimits;
  readonly spool: OutcomeKeeper;
  /** The worker waits for nothing any more: outcomes that could not be stored until now are left to the spool. */
  abandoned(): boolean;
  readonly counters: Counters;
  readonly hooks: WorkerHooks;
  readonly logger: Logger;
}

/** What every command of this worker carries. */
export const commandMeta = ({ actor, clock }: Pick<Bench, 'actor' | 'clock'>, trace: string | undefined) => ({
  eventId: randomUUID() as string,
  at: clock.now(),
  actor,
  ...(trace === undefined ? {} : { trace }),
});

export function handBack(
  { tell, counters }: Pick<Bench, 'tell' | 'counters'>,
  delivery: Delivery,
  delayMs = 0,
): void {
  counters.handedBack += 1;
  tell(delivery.ackSubject, nak(delayMs));
}
