import { setTimeout as delay } from 'node:timers/promises';
import { type ConsumerMessages, type JsMsg, jetstream } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import { monotonicClock } from '../platform/clock.ts';
import { Patience, sparingly } from '../platform/patience.ts';
import type { Service } from '../platform/service.ts';
import type { Backlog } from './backlog.ts';
import { Crowd } from './crowd.ts';
import type { Intake } from './intake.ts';
import { INTAKE_CONSUMER, IntakeConsumer } from './intake-consumer.ts';
import { type Addressed, addressOf, type Receipt, receive } from './receipt.ts';
import { turnAway } from './turn-away.ts';

/**
 * Turns messages of SUBMISSIONS into tasks. All API processes share one durable consumer; a message is acked once its
 * INGESTED or REJECTED is stored, so a crash in between means a redelivery, which finds the task there.
 *
 * A message of a tenant whose own backlog is full stays in SUBMISSIONS and comes again later. When too many do, those of
 * the tenants that have most of them are refused, so that the others' are delivered.
 *
 * Modes: pulling -> (a type is full) -> closed -> (none is full) -> pulling; any -> stopped.
 */
export interface Gateway extends Service {
  /** How many messages each outcome had so far. */
  stats(): Readonly<Record<string, number>>;
}

export interface GatewayOptions {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly intake: Intake;
  readonly backlog: Pick<Backlog, 'anyFull' | 'fullTenant' | 'onOpen'>;
  readonly tenants: { get(name: string): unknown };
  /** Messages that may wait to come again before any is refused for it, over all API processes. */
  readonly maxParked: number;
  readonly logger: Logger;
  /** Told of every message: `accepted`, `replayed`, `misaddressed`, `deferred`, `parked`, or the code it was refused with. */
  readonly observe?: (outcome: string, ms: number) => void;
}

/** Messages that one process works on at once. */
const IN_FLIGHT = 256;
/** A message that could not be stored comes back after this long. */
const DEFER_MS = 2_000;
const RETRY_MS = 500;
/** Servers in an election drop a request without a word: no longer is waited for an answer, and then asked again. */
const ANSWER_MS = 1_000;
/** One that cannot be taken for reasons that may last comes back after this long, and after twice as long each time, up to a minute. */
const PARK_MS = 2_000;
const MAX_PARK_MS = 60_000;
const patienceWith = ({ info: { deliveryCount } }: JsMsg): number =>
  Math.min(MAX_PARK_MS, PARK_MS * 2 ** Math.min(10, deliveryCount - 1));

const isDelayedFull = (error: unknown): error is TaskledgerError =>
  error instanceof TaskledgerError && error.code === 'delayed_full';

export function createGateway(options: GatewayOptions): Gateway {
  return new SubmissionGateway(options);
}

class SubmissionGateway implements Gateway {
  readonly name = 'gateway';
  readonly #options: GatewayOptions;
  readonly #consumer: IntakeConsumer;
  readonly #crowd: Crowd;
  readonly #counts: Record<string, number> = {};
  readonly #inFlight = new Set<Promise<void>>();
  #stopping = new AbortController();
  #messages: ConsumerMessages | undefined;
  #running: Promise<void> | undefined;
  #opened: (() => void) | undefined;
  readonly #sayTrouble: (error: unknown) => void;

  constructor(options: GatewayOptions) {
    this.#options = options;
    const { nc, names, maxParked: limit, logger } = options;
    // Twice, so that the others' messages still come while it is being noticed.
    this.#consumer = new IntakeConsumer({ nc, names, maxAckPending: 2 * limit });
    const pending = (): Promise<number> => this.#consumer.ackPending();
    this.#crowd = new Crowd({ limit, pending, clock: monotonicClock, logger });
    this.#sayTrouble = sparingly((error) =>
      logger.warn({ reason: (error as Error).message }, 'the gateway could not pull; trying again'),
    );
    options.backlog.onOpen(() => this.#opened?.());
  }

  stats(): Readonly<Record<string, number>> {
    return { ...this.#counts };
  }

  async start(patience = new Patience()): Promise<void> {
    this.#stopping = new AbortController();
    await patience.waitFor('the consumer of SUBMISSIONS', () => this.#consumer.ensure());
    this.#running = this.#run();
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#opened?.();
    this.#messages?.stop();
    await this.#running;
    await Promise.all(this.#inFlight);
    await this.#crowd.stop();
  }

  async #run(): Promise<void> {
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.#whenOpen();
        await this.#runOnce();
      } catch (error) {
        if (signal.aborted) break;
        this.#sayTrouble(error);
        await delay(RETRY_MS, undefined, { signal }).catch(() => undefined);
        // Somebody may have deleted the consumer; when it is there, this changes nothing.
        await this.#consumer.ensure().catch(() => undefined);
      }
    }
  }

  /** Pulls until a type is full, the gateway stops, or the consumer is lost. */
  async #runOnce(): Promise<void> {
    const { nc, names, backlog } = this.#options;
    if (this.#stopping.signal.aborted) return;
    const { consumers } = jetstream(nc, { timeout: ANSWER_MS });
    const consumer = await consumers.get(names.streams.submissions, INTAKE_CONSUMER);
    const messages = await consumer.consume({
      max_messages: IN_FLIGHT,
      // The defaults notice a lost leader after 42 s.
      idle_heartbeat: 500,
      expires: 5_000,
      abort_on_missing_resource: true,
    });
    this.#messages = messages;
    // A stop during the await found nothing to stop.
    if (this.#stopping.signal.aborted) messages.stop();
    for await (const message of messages) {
      await this.#take(message);
      // Ends the pulls; what has been delivered already still comes and is taken.
      if (backlog.anyFull() !== undefined) messages.stop();
    }
    this.#messages = undefined;
  }

  /** Starts work on a message, and waits only while too many are in work. */
  async #take(message: JsMsg): Promise<void> {
    while (this.#inFlight.size >= IN_FLIGHT) await Promise.race(this.#inFlight);
    const work: Promise<void> = this.#handle(message).finally(() => this.#inFlight.delete(work));
    this.#inFlight.add(work);
  }

  async #handle(message: JsMsg): Promise<void> {
    const { names, observe } = this.#options;
    const startedAt = performance.now();
    const address = addressOf(names, message.subject);
    this.#crowd.cameAgain(message.seq);
    const outcome = await (address === undefined
      ? this.#misaddressed(message)
      : this.#settle(message, address).catch((error: unknown) => this.#defect(error, message, address)));
    this.#counts[outcome] = (this.#counts[outcome] ?? 0) + 1;
    observe?.(outcome, performance.now() - startedAt);
  }

  /** Append, then ack, then reply. */
  async #settle(message: JsMsg, address: Addressed): Promise<string> {
    const { nc, logger } = this.#options;
    const { seq } = message;
    try {
      const receipt = await this.#receiptOf(message, address);
      if (receipt === undefined) return this.#park(message, address);
      message.ack();
      if (receipt.replyTo !== undefined) nc.publish(receipt.replyTo, JSON.stringify(receipt.answer));
      if (receipt.outcome === 'idempotency_conflict' || receipt.unrecorded)
        logger.warn(
          { ...address, seq, outcome: receipt.outcome, taskId: receipt.taskId },
          'submission refused',
        );
      return receipt.outcome;
    } catch (error) {
      if (!(error instanceof TaskledgerError) || !error.retryable) throw error;
      logger.warn({ ...address, seq, reason: error.message }, 'submission deferred');
      this.#sendBack(message, address, DEFER_MS);
      return 'deferred';
    }
  }

  /** Undefined when there is no room for its task, and the message is to be parked. */
  async #receiptOf(message: JsMsg, address: Addressed): Promise<Receipt | undefined> {
    const { intake, tenants, backlog } = this.#options;
    const parts = { intake, tenants };
    const full = backlog.fullTenant(address.tenant);
    let lacksRoom = full && new TaskledgerError('tenant_backlog_full', { ...full });
    try {
      if (lacksRoom === undefined) return await receive(message, address, parts);
    } catch (error) {
      if (!isDelayedFull(error)) throw error;
      lacksRoom = error;
    }
    if (!(await this.#crowd.isCrowdedBy(address.tenant))) return undefined;
    return turnAway(message, address, lacksRoom, parts);
  }

  /** A tenant with too much waiting waits with its further submissions too, and no other tenant waits with it. */
  #park(message: JsMsg, address: Addressed): string {
    this.#sendBack(message, address, patienceWith(message));
    return 'parked';
  }

  /** It is kept: a release of the code that is whole may take it. */
  #defect(error: unknown, message: JsMsg, address: Addressed): string {
    const { subject, seq } = message;
    this.#options.logger.error({ subject, seq, err: error }, 'a submission failed unexpectedly');
    this.#sendBack(message, address, patienceWith(message));
    return 'internal';
  }

  #sendBack(message: JsMsg, { tenant }: Addressed, forMs: number): void {
    message.nak(forMs);
    this.#crowd.sentBack(tenant, message.seq, forMs);
  }

  /** Names that can never be a tenant or a type have no place where a REJECTED could stand. */
  #misaddressed(message: JsMsg): string {
    const { logger } = this.#options;
    logger.warn(
      { subject: message.subject, seq: message.seq },
      'submission to no valid tenant and type: dropped',
    );
    message.term('not a valid tenant and type');
    return 'misaddressed';
  }

  async #whenOpen(): Promise<void> {
    const { backlog, logger } = this.#options;
    const full = backlog.anyFull();
    if (full === undefined || this.#stopping.signal.aborted) return;
    logger.warn({ ...full }, 'the gateway pauses');
    await new Promise<void>((resolve) => {
      this.#opened = resolve;
    });
    this.#opened = undefined;
  }
}
