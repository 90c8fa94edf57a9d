import { type ConsumerMessages, DeliverPolicy, jetstream } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Publisher } from '../log/publisher.ts';
import type { Names } from '../log/subjects.ts';
import { orUnavailable } from '../log/unavailable.ts';
import type { Logger } from '../observe/log.ts';
import { Patience } from '../platform/patience.ts';
import type { Service } from '../platform/service.ts';

/** Due times within one part share one ring: the next second, when all of them have come. */
const GRAIN_MS = 1_000;
/** A ring that is later than this does not come any more. The server's own are up to 250 ms late. */
const MISSED_AFTER_MS = 1_000;
/** How long a ring stays in the stream: it is for those who listen now. */
const RING_TTL = '1m';

export interface AlarmParts {
  readonly nc: NatsConnection;
  readonly names: Pick<Names, 'alarm' | 'ring' | 'streams'>;
  readonly publisher: Pick<Publisher, 'publish'>;
  /** What is dispatched: the leader of a group sets the group's alarm, all its dispatchers hear it. */
  readonly group: string;
  readonly logger: Logger;
  /** It rings; `storedAt` is the server's time. */
  onRing(storedAt: number): void;
}

/** `missed`: due times that no ring announced. */
export type AlarmStats = Readonly<Record<'set' | 'failed' | 'rung' | 'missed', number>>;

/**
 * The server's voice that a time has come: one schedule in TIMERS for a group, moved on to the next due time. The dispatcher
 * counts time for itself between the messages that it hears; when it hears none, the alarm bounds by how much it may be late.
 * Nothing depends on it alone: an alarm that cannot be set, is purged or stays silent is set again for the next due time.
 *
 *   unset -> set     there is a due time
 *   set   -> unset   it rang, or should have and did not
 *   set   -> set     another due time comes first
 */
export class Alarm implements Service {
  readonly name = 'alarm';
  readonly #parts: AlarmParts;
  #rings: ConsumerMessages | undefined;
  /** Infinity when unset. */
  #at = Number.POSITIVE_INFINITY;
  #storing = false;
  readonly #counts = { set: 0, failed: 0, rung: 0, missed: 0 };

  constructor(parts: AlarmParts) {
    this.#parts = parts;
  }

  async start(patience = new Patience()): Promise<void> {
    if (this.#rings !== undefined) return;
    const { nc, names, group } = this.#parts;
    const listening = { filter_subjects: names.ring(group), deliver_policy: DeliverPolicy.New };
    const consumer = await patience.waitFor(this.name, () =>
      orUnavailable(() => jetstream(nc).consumers.get(names.streams.timers, listening)),
    );
    this.#rings = await consumer.consume({
      max_messages: 100,
      expires: 5_000,
      // The default notices a changed consumer leader after 42 s only.
      idle_heartbeat: 500,
      callback: (message) => this.#rang(message.time.getTime()),
    });
  }

  async stop(): Promise<void> {
    const rings = this.#rings;
    this.#rings = undefined;
    if (rings !== undefined && !this.#parts.nc.isClosed()) await rings.close();
  }

  /** Something is due at `dueAt`; nothing before. `now` is the server's time. */
  set(dueAt: number, now: number): void {
    if (now > this.#at + MISSED_AFTER_MS) {
      this.#counts.missed += 1;
      this.#at = Number.POSITIVE_INFINITY;
    }
    const at = Math.ceil(dueAt / GRAIN_MS) * GRAIN_MS;
    if (at >= this.#at || at <= now || this.#storing) return;
    this.#at = at;
    void this.#store(at);
  }

  /** Whoever leads now sets it for himself. */
  forget(): void {
    this.#at = Number.POSITIVE_INFINITY;
  }

  stats(): AlarmStats {
    return { ...this.#counts };
  }

  async #store(at: number): Promise<void> {
    const { names, publisher, group, logger } = this.#parts;
    this.#storing = true;
    try {
      await publisher.publish(names.alarm(group), '', {
        'Nats-Schedule': `@at ${new Date(at).toISOString()}`,
        'Nats-Schedule-Target': names.ring(group),
        'Nats-Schedule-TTL': RING_TTL,
      });
      this.#counts.set += 1;
    } catch (error) {
      this.#counts.failed += 1;
      this.forget();
      logger.warn({ error: String(error) }, 'the alarm was not set');
    }
    this.#storing = false;
  }

  #rang(storedAt: number): void {
    this.#counts.rung += 1;
    if (storedAt >= this.#at) this.#at = Number.POSITIVE_INFINITY;
    this.#parts.onRing(storedAt);
  }
}
