import { type ConsumerMessages, DeliverPolicy, jetstream } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Publisher } from '../log/publisher.ts';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Service } from '../platform/service.ts';
import { Deque } from './deque.ts';

/** Schedules being stored at once: few enough to leave the publisher's window to the appends. */
const MAX_IN_FLIGHT = 128;
/** How long a fired timer stays in the stream. It is a hint for those who listen now. */
const FIRED_TTL = '1m';

export interface Timer {
  readonly tenant: string;
  readonly type: string;
  readonly taskId: string;
  /** Ms since 1970. */
  readonly dueAt: number;
}

export interface TimersParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly publisher: Pick<Publisher, 'publish'>;
  readonly logger: Logger;
  /** A schedule has fired. Called for every one of the installation, whoever set it; once per message, or again after a reconnect. */
  onFired(timer: Timer): void;
}

/**
 * Delays by the server's own schedules: one for each delayed task, replaced when the task is delayed again. They are
 * hints: whoever sets one also watches the due time, so a schedule that cannot be stored or does not fire costs
 * punctuality only. Those of tasks that no longer wait fire into the void.
 */
export class Timers implements Service {
  readonly name = 'timers';
  readonly #parts: TimersParts;
  readonly #waiting = new Deque<Timer>();
  #inFlight = 0;
  #fired: ConsumerMessages | undefined;
  readonly #counts = { set: 0, failed: 0, fired: 0 };

  constructor(parts: TimersParts) {
    this.#parts = parts;
  }

  /** Listens from now on: start it before the log is replayed, so that nothing fires unheard in between. */
  async start(): Promise<void> {
    if (this.#fired !== undefined) return;
    const { nc, names } = this.#parts;
    const consumer = await jetstream(nc).consumers.get(names.streams.timers, {
      filter_subjects: names.allDue,
      deliver_policy: DeliverPolicy.New,
    });
    this.#fired = await consumer.consume({
      max_messages: 1_000,
      expires: 5_000,
      // The default notices a changed consumer leader after 42 s only.
      idle_heartbeat: 500,
      callback: (message) => this.#onMessage(message.data),
    });
  }

  async stop(): Promise<void> {
    this.#waiting.clear();
    const fired = this.#fired;
    this.#fired = undefined;
    if (fired !== undefined && !this.#parts.nc.isClosed()) await fired.close();
  }

  set(timer: Timer): void {
    if (this.#inFlight < MAX_IN_FLIGHT) void this.#store(timer);
    else this.#waiting.push(timer);
  }

  stats(): { set: number; failed: number; fired: number; waiting: number } {
    return { ...this.#counts, waiting: this.#waiting.length + this.#inFlight };
  }

  async #store(first: Timer): Promise<void> {
    this.#inFlight += 1;
    for (let timer: Timer | undefined = first; timer !== undefined; timer = this.#waiting.shift()) {
      try {
        await this.#publish(timer);
        this.#counts.set += 1;
      } catch (error) {
        this.#counts.failed += 1;
        this.#parts.logger.warn({ taskId: timer.taskId, error: String(error) }, 'a timer was not stored');
      }
    }
    this.#inFlight -= 1;
  }

  #publish(timer: Timer): Promise<unknown> {
    const { names, publisher } = this.#parts;
    const { tenant, type, taskId, dueAt } = timer;
    return publisher.publish(names.timer(tenant, type, taskId), JSON.stringify(timer), {
      'Nats-Schedule': `@at ${new Date(dueAt).toISOString()}`,
      'Nats-Schedule-Target': names.due(tenant, type, taskId),
      'Nats-Schedule-TTL': FIRED_TTL,
    });
  }

  #onMessage(data: Uint8Array): void {
    this.#counts.fired += 1;
    try {
      this.#parts.onFired(
        JSON.parse(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString()) as Timer,
      );
    } catch (error) {
      this.#parts.logger.warn({ error: String(error) }, 'a fired timer cannot be read');
    }
  }
}
