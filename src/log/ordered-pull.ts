import { AckPolicy, DeliverPolicy, type JetStreamManager, ReplayPolicy } from '@nats-io/jetstream';
import {
  createInbox,
  type Msg,
  type NatsConnection,
  nanos,
  nuid,
  type Subscription,
} from '@nats-io/transport-node';
import { askAgain } from './ask-again.ts';
import { inboxPrefixOf } from './inbox.ts';
import { msOfNanos } from './stored-at.ts';

/** A message as the consumer delivered it. `seq` and `storedAt` (ms) are those of the stream that is read. */
export interface Delivered {
  readonly seq: number;
  readonly storedAt: number;
  readonly message: Msg;
}

export interface OrderedPullOptions {
  readonly nc: NatsConnection;
  readonly jsm: JetStreamManager;
  readonly stream: string;
  readonly fromSeq: number;
  /** Messages asked for and not yet taken, at most. */
  readonly capacity: number;
  /** How many the user still holds from a consumer before this one. */
  readonly held: number;
  /** Called for every message, in order. */
  onMessage(delivered: Delivered): void;
  /** The consumer is of no more use: a gap, a lost leader, silence. Called once; nothing is delivered afterwards. */
  onBroken(reason: string): void;
}

const EXPIRES_MS = 5_000;
const IDLE_HEARTBEAT_MS = 500;
/** Heartbeats missed before the consumer is given up. */
const SILENCE_MS = 3 * IDLE_HEARTBEAT_MS;
/** A reader that stops asking for so long has its consumer removed by the server, and makes a new one later. */
const INACTIVE_MS = 30_000;
const MAX_PULL_BYTES = 16 * 1024 * 1024;

/**
 * One ephemeral consumer (ack none, one replica, in memory) and the pulls on it. It does not heal: whoever uses it
 * makes another one from the next sequence. The client's own ordered consumer costs more a message and stalls longer.
 */
export class OrderedPull {
  readonly #options: OrderedPullOptions;
  readonly #inbox: string;
  #subscription: Subscription | undefined;
  #consumer = '';
  #ended = false;
  /** Messages that the server still owes to pulls. */
  #owed = 0;
  /** Messages handed over that the user has not `taken` yet. */
  #held: number;
  #lastDelivery = 0;
  #heardAt = 0;
  #watch: NodeJS.Timeout | undefined;

  constructor(options: OrderedPullOptions) {
    this.#options = options;
    this.#held = options.held;
    this.#inbox = createInbox(inboxPrefixOf(options.nc));
  }

  /** Makes the consumer and asks for the first messages. Throws what the server or the connection says. */
  async open(): Promise<void> {
    const { nc, jsm, stream, fromSeq } = this.#options;
    // With a name it is one consumer, however often it is asked for.
    const wanted = {
      name: nuid.next(),
      ack_policy: AckPolicy.None,
      replay_policy: ReplayPolicy.Instant,
      ...(fromSeq <= 1
        ? { deliver_policy: DeliverPolicy.All }
        : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: fromSeq }),
      mem_storage: true,
      num_replicas: 1,
      inactive_threshold: nanos(INACTIVE_MS),
    };
    await askAgain(() => jsm.consumers.add(stream, wanted));
    if (this.#ended) return;
    this.#consumer = wanted.name;
    this.#subscription = nc.subscribe(this.#inbox, {
      callback: (error, message) => {
        if (error) this.#break(error.message);
        else this.#received(message);
      },
    });
    this.#heardAt = performance.now();
    this.#watch = setInterval(() => {
      if (this.#owed > 0 && performance.now() - this.#heardAt > SILENCE_MS) this.#break('no heartbeat');
    }, IDLE_HEARTBEAT_MS / 2);
    this.#refill();
  }

  /** The user has dealt with `count` messages: there is room for as many. */
  taken(count: number): void {
    this.#held -= count;
    this.#refill();
  }

  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    clearInterval(this.#watch);
    const { nc, jsm, stream } = this.#options;
    if (nc.isClosed()) return;
    this.#subscription?.unsubscribe();
    if (this.#consumer !== '') jsm.consumers.delete(stream, this.#consumer).catch(() => undefined);
  }

  #refill(): void {
    const { nc, stream, capacity } = this.#options;
    const room = capacity - this.#held - this.#owed;
    if (this.#ended || this.#consumer === '' || room < capacity / 2) return;
    if (this.#owed === 0) this.#heardAt = performance.now();
    this.#owed += room;
    try {
      nc.publish(
        `$JS.API.CONSUMER.MSG.NEXT.${stream}.${this.#consumer}`,
        JSON.stringify({
          batch: room,
          max_bytes: MAX_PULL_BYTES,
          expires: nanos(EXPIRES_MS),
          idle_heartbeat: nanos(IDLE_HEARTBEAT_MS),
        }),
        { reply: this.#inbox },
      );
    } catch (error) {
      this.#break((error as Error).message);
    }
  }

  #received(message: Msg): void {
    if (this.#ended) return;
    this.#heardAt = performance.now();
    // Deliveries carry the stream's subject; what comes on the inbox's own is a status.
    if (message.subject === this.#inbox) {
      this.#status(message);
      return;
    }
    const delivery = deliveryOf(message.reply ?? '');
    if (delivery.consumerSeq !== this.#lastDelivery + 1) {
      this.#break(`delivery ${delivery.consumerSeq} follows ${this.#lastDelivery}`);
      return;
    }
    this.#lastDelivery = delivery.consumerSeq;
    this.#owed -= 1;
    this.#held += 1;
    this.#options.onMessage({ seq: delivery.streamSeq, storedAt: delivery.storedAt, message });
    this.#refill();
  }

  /** 100 heartbeat; 408 and some 409 end a pull and say what it leaves undelivered; the rest ends the consumer. */
  #status(message: Msg): void {
    const code = message.headers?.code ?? 0;
    if (code === 100) {
      const last = Number(message.headers?.get('Nats-Last-Consumer') ?? '');
      if (last > this.#lastDelivery) this.#break(`delivery ${last} was missed`);
      return;
    }
    const pending = message.headers?.get('Nats-Pending-Messages') ?? '';
    if ((code === 408 || code === 409) && pending !== '') {
      this.#owed = Math.max(0, this.#owed - Number(pending));
      if (!/leadership|deleted/i.test(message.headers?.description ?? '')) {
        this.#refill();
        return;
      }
    }
    this.#break(`${code} ${message.headers?.description ?? ''}`.trim());
  }

  #break(reason: string): void {
    if (this.#ended) return;
    this.end();
    this.#options.onBroken(reason);
  }
}

/** `$JS.ACK.<stream>.<consumer>.<delivered>.<stream seq>.<consumer seq>.<ns>.<pending>`, with domain and account hash in front in version 2. */
export function deliveryOf(reply: string): { streamSeq: number; consumerSeq: number; storedAt: number } {
  const tokens = reply.split('.');
  const first = tokens.length >= 11 ? 7 : 5;
  return {
    streamSeq: Number(tokens[first]),
    consumerSeq: Number(tokens[first + 1]),
    storedAt: msOfNanos(tokens[first + 2]),
  };
}
