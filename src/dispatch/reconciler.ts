import { randomUUID } from 'node:crypto';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { decide } from '../domain/decide.ts';
import type { Actor } from '../domain/events.ts';
import { payloadIn } from '../domain/task.ts';
import { execute } from '../log/handle.ts';
import type { OpenedLog } from '../log/open.ts';
import { isRefusal } from '../log/refusal.ts';
import { ensureWorkConsumer } from '../log/streams.ts';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config.ts';
import type { Service } from '../platform/service.ts';
import type { Fleet } from '../registry/fleet.ts';
import { type LostAttempt, LostWorkers } from './lost-workers.ts';
import type { RunningAttempts } from './running-attempts.ts';
import { type ConsumerState, isLost, type Offer, type Suspects, UnclaimedWork } from './unclaimed-work.ts';

export interface ReconcilerParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly log: Pick<OpenedLog, 'append' | 'readState' | 'readEvent'>;
  readonly fleet: Pick<Fleet, 'sightOf' | 'askAfter'>;
  readonly attempts: RunningAttempts;
  /** Work items that nobody has claimed. */
  readonly offered: () => Iterable<Offer>;
  /** Only the leader heals: others would do it twice. */
  readonly leads: () => boolean;
  readonly config: Pick<Config, 'ackWaitMs' | 'reconcileEveryMs'>;
  readonly actor: Actor;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** What one pass has healed. */
export interface Reconciled {
  /** Work items that no worker could see, or that were about to age out. */
  readonly requeued: number;
  /** Shared consumers that were gone. */
  readonly consumers: number;
  /** Attempts that their workers do not run any more. */
  readonly lost: number;
}

/** Of each kind in one pass: an outage must not become a storm of appends. */
const MAX_A_PASS = 200;
const AT_ONCE = 16;

/**
 * Finds what nobody drives any more and gives it to somebody: work items whose consumer has lost them, consumers that
 * were deleted, attempts whose worker is gone together with their delivery. Tasks that wait are the core's own.
 * Everything it does is an append that the fence checks, so that a wrong suspicion is refused.
 */
export class Reconciler implements Service {
  readonly name = 'reconciler';
  readonly #parts: ReconcilerParts;
  readonly #unclaimed = new UnclaimedWork();
  readonly #lostWorkers: LostWorkers;
  /** Offers up to this sequence will age out before long. */
  #agingSeq = 0;
  #jsm: JetStreamManager | undefined;
  #timer: NodeJS.Timeout | undefined;
  #pass: Promise<unknown> | undefined;
  #stopped = true;

  constructor(parts: ReconcilerParts) {
    this.#parts = parts;
    const { attempts, fleet, config } = parts;
    this.#lostWorkers = new LostWorkers({ attempts, fleet, ackWaitMs: config.ackWaitMs });
  }

  async start(): Promise<void> {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#schedule();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    await this.#pass;
  }

  /** Events up to `seq` will age out of the log before long. */
  age(seq: number): void {
    this.#agingSeq = Math.max(this.#agingSeq, seq);
  }

  /** One pass over everything. Does nothing unless leading. */
  async runOnce(): Promise<Reconciled> {
    const counts = { requeued: 0, consumers: 0, lost: 0 };
    if (!this.#parts.leads()) return counts;
    const aging = [...this.#parts.offered()].filter(({ seq }) => seq <= this.#agingSeq);
    counts.requeued += await this.#requeue(aging.slice(0, MAX_A_PASS));
    for (const suspects of this.#unclaimed.take(this.#parts.offered())) {
      const consumer = await this.#consumerOf(suspects);
      if (consumer === undefined) {
        await this.#makeConsumer(suspects);
        counts.consumers += 1;
        continue;
      }
      const lost = suspects.offers.filter((offer) => isLost(offer, consumer));
      counts.requeued += await this.#requeue(lost.slice(0, MAX_A_PASS));
    }
    const attempts = await this.#lostWorkers.find(performance.now(), MAX_A_PASS);
    counts.lost += await countOf(attempts, (attempt) => this.#lose(attempt));
    return counts;
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      this.#pass = this.#look().finally(() => this.#schedule());
    }, this.#parts.config.reconcileEveryMs);
  }

  async #look(): Promise<void> {
    const { logger, nc } = this.#parts;
    try {
      const counts = await this.runOnce();
      if (counts.requeued + counts.consumers + counts.lost > 0)
        logger.warn(counts, 'healed what nobody drove any more');
    } catch (error) {
      if (!this.#stopped && !nc.isClosed())
        logger.warn({ error: String(error) }, 'could not look for what nobody drives');
    }
  }

  async #consumerOf({ type, version }: Suspects): Promise<ConsumerState | undefined> {
    const { nc, names } = this.#parts;
    this.#jsm ??= await jetstreamManager(nc, { checkAPI: false });
    try {
      const info = await this.#jsm.consumers.info(names.streams.tasks, names.workConsumer(type, version));
      return {
        ackedUpTo: info.ack_floor.stream_seq,
        deliveredUpTo: info.delivered.stream_seq,
        ackPending: info.num_ack_pending,
      };
    } catch (error) {
      if (isRefusal(error, 'consumer_not_found')) return undefined;
      throw error;
    }
  }

  /** From the oldest item that is still work, so that the workers are spared all that was settled long ago. */
  async #makeConsumer({ type, version, oldestSeq }: Suspects): Promise<void> {
    await ensureWorkConsumer(this.#parts, type, { version, fromSeq: () => oldestSeq });
    this.#parts.logger.warn(
      { type, version, fromSeq: oldestSeq },
      'a work consumer was gone and is made anew',
    );
  }

  #requeue(offers: readonly Offer[]): Promise<number> {
    return countOf(offers, (offer) => this.#announceAgain(offer));
  }

  /** True when the item was announced again; false when it has moved on, or cannot be. */
  async #announceAgain({ tenant, id: taskId, seq }: Offer): Promise<boolean> {
    const { log, actor, clock, logger } = this.#parts;
    const state = await log.readState(tenant, taskId, seq);
    if (state === undefined || state.seq !== seq) return false;
    let { payload } = state;
    if (payload === undefined && state.payloadSeq !== undefined) {
      const holder = await log.readEvent(state.payloadSeq);
      payload = holder === undefined ? undefined : payloadIn(holder.event);
    }
    const decided = decide(
      { ...state, payload },
      { kind: 'requeue', eventId: randomUUID(), at: clock.now(), actor },
    );
    if (!decided.ok) {
      logger.error({ taskId, tenant, error: decided.error.code }, 'a work item cannot be announced again');
      return false;
    }
    return (await log.append(decided.value, seq)).status === 'stored';
  }

  async #lose({ tenant, taskId, attempt, holder, reason }: LostAttempt): Promise<boolean> {
    const { log, actor, clock, logger } = this.#parts;
    const lost = await execute(log, { tenant, taskId }, () => ({
      kind: 'lose',
      eventId: randomUUID(),
      at: clock.now(),
      actor,
      attempt,
      reason,
      dice: Math.random(),
    }));
    if (lost.ok)
      logger.info(
        { taskId, tenant, attempt, holder, reason },
        'attempt recorded as lost: its worker does not run it any more',
      );
    return lost.ok;
  }
}

/** How many came out true, a few at a time. */
async function countOf<T>(items: readonly T[], act: (item: T) => Promise<boolean>): Promise<number> {
  let count = 0;
  for (let from = 0; from < items.length; from += AT_ONCE) {
    const outcomes = await Promise.all(items.slice(from, from + AT_ONCE).map(act));
    count += outcomes.filter(Boolean).length;
  }
  return count;
}
