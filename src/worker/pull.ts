import {
  createInbox,
  type Msg,
  type NatsConnection,
  nanos,
  type Subscription,
} from '@nats-io/transport-node';
import { inboxPrefixOf } from '../log/inbox.ts';
import type { Logger } from '../observe/log.ts';
import { sparingly } from '../platform/patience.ts';
import { type Delivery, parseAckSubject } from './delivery.ts';
import { monotonicMs } from './monotonic.ts';

export interface PullOptions {
  readonly nc: NatsConnection;
  readonly stream: string;
  readonly consumer: string;
  readonly type: string;
  /** Called from the socket's callback, in order of arrival. */
  onDelivery(delivery: Delivery): void;
  /** What is outstanding has changed otherwise: a request ended, or was given up. */
  onSettled(): void;
  /** The consumer is gone: make it again. Called at most once at a time. */
  recreate(): Promise<void>;
  readonly logger: Logger;
}

/** Long enough to make idle workers cheap; a request that the server forgot costs no longer than the silence below. */
const EXPIRES_MS = 5_000;
const IDLE_HEARTBEAT_MS = 500;
/** With requests outstanding, nothing heard for so long means that the server no longer knows them: ask again. */
const SILENCE_MS = 3 * IDLE_HEARTBEAT_MS;
const WATCH_EVERY_MS = 250;
/** After a refused request, before the next one. */
const BACKOFF_MS = 200;
const MAX_WINDOW = 1_024;

interface Request {
  readonly id: number;
  readonly batch: number;
  left: number;
}

/**
 * Asks one shared consumer for work items, exactly as many as it is told to, and hears what becomes of each request.
 * Written by hand because the client's `consume()` stalls for seconds to a minute after a consumer leader change and
 * asks for more than can run (DESIGN.md 7).
 */
export class Pull {
  readonly #options: PullOptions;
  readonly #inbox: string;
  readonly #subject: string;
  /** In the order the server serves them. */
  #requests: Request[] = [];
  #outstanding = 0;
  #window = 1;
  #nextId = 0;
  #heardAt = 0;
  #watchedAt = 0;
  #pausedUntil = 0;
  #watch: NodeJS.Timeout | undefined;
  #subscription: Subscription | undefined;
  #recreating = false;
  #stopped = false;
  readonly #saySilence: (silentMs: number) => void;
  readonly #sayLost: (error: unknown) => void;

  constructor(options: PullOptions) {
    const { type, logger } = options;
    this.#options = options;
    this.#saySilence = sparingly((silentMs) =>
      logger.info(
        { type, silentMs: Math.round(silentMs) },
        'no heartbeat for a request for work; asking again',
      ),
    );
    this.#sayLost = sparingly((error) =>
      logger.warn(
        { reason: (error as Error).message, type },
        'the work consumer cannot be reached; trying again',
      ),
    );
    this.#inbox = createInbox(inboxPrefixOf(options.nc));
    this.#subject = `$JS.API.CONSUMER.MSG.NEXT.${options.stream}.${options.consumer}`;
  }

  get type(): string {
    return this.#options.type;
  }

  /** Items asked for and not delivered yet. */
  get outstanding(): number {
    return this.#outstanding;
  }

  /** Most items worth having asked for: doubles whenever all that was asked for came, and is 1 after a request that brought none. */
  get window(): number {
    return this.#window;
  }

  /** Whether asking now makes sense: started, connected, and not just refused. */
  get ready(): boolean {
    if (this.#subscription === undefined || this.#stopped || this.#options.nc.isClosed()) return false;
    return monotonicMs() >= this.#pausedUntil;
  }

  start(): void {
    this.#subscription = this.#options.nc.subscribe(`${this.#inbox}.*`, {
      callback: (error, message) => {
        if (!error) this.#received(message);
      },
    });
    this.#heardAt = this.#watchedAt = monotonicMs();
    this.#watch = setInterval(() => this.#look(), WATCH_EVERY_MS);
  }

  ask(batch: number): void {
    const id = this.#nextId++;
    if (this.#requests.length === 0) this.#heardAt = monotonicMs();
    this.#requests.push({ id, batch, left: batch });
    this.#outstanding += batch;
    this.#options.nc.publish(
      this.#subject,
      `{"batch":${batch},"expires":${nanos(EXPIRES_MS)},"idle_heartbeat":${nanos(IDLE_HEARTBEAT_MS)}}`,
      { reply: `${this.#inbox}.${id}` },
    );
  }

  /** Forgets what was asked for: the connection was new, or the server has. */
  forget(): void {
    this.#requests = [];
    this.#outstanding = 0;
  }

  /** The server stops serving; what is under way still arrives before this resolves. */
  async stop(): Promise<void> {
    if (this.#stopped) return;
    this.#stopped = true;
    clearInterval(this.#watch);
    if (!this.#options.nc.isClosed()) await this.#subscription?.drain().catch(() => undefined);
    this.forget();
  }

  #received(message: Msg): void {
    this.#heardAt = monotonicMs();
    // Work items carry the stream's subject; what comes on the inbox's own is a status.
    if (message.subject.startsWith(this.#inbox)) this.#status(message);
    else this.#item(message);
  }

  #item(message: Msg): void {
    const ackSubject = message.reply ?? '';
    const info = parseAckSubject(ackSubject);
    if (info === undefined) return;
    this.#served();
    this.#options.onDelivery({
      ...info,
      type: this.#options.type,
      ackSubject,
      data: message.data,
      receivedAt: this.#heardAt,
    });
  }

  #served(): void {
    const first = this.#requests[0];
    if (first === undefined) return;
    this.#outstanding -= 1;
    first.left -= 1;
    if (first.left === 0) this.#requests.shift();
    if (this.#outstanding === 0) this.#window = Math.min(MAX_WINDOW, this.#window * 2);
  }

  /**
   * 100 heartbeat; 404, 408 and 409 end the request they are sent to; 503 means that no server answers for the
   * consumer: it is gone, or has no leader.
   */
  #status(message: Msg): void {
    const code = message.headers?.code ?? 0;
    if (code === 100) return;
    const description = message.headers?.description ?? '';
    this.#end(Number(message.subject.slice(this.#inbox.length + 1)));
    const ended = code === 408 || code === 404 || (code === 409 && /batch completed/i.test(description));
    if (ended) this.#options.onSettled();
    else this.#refused(code, description);
  }

  #refused(code: number, description: string): void {
    this.#options.logger.debug(
      { code, description, type: this.#options.type },
      'a request for work was refused',
    );
    this.#pausedUntil = monotonicMs() + BACKOFF_MS;
    if (code === 503 || /deleted/i.test(description)) void this.#recreate();
    setTimeout(() => this.#options.onSettled(), BACKOFF_MS + 1).unref();
  }

  #end(id: number): void {
    const index = this.#requests.findIndex((request) => request.id === id);
    const [request] = index < 0 ? [] : this.#requests.splice(index, 1);
    if (request === undefined) return;
    this.#outstanding -= request.left;
    if (request.left === request.batch) this.#window = 1;
  }

  #look(): void {
    const now = monotonicMs();
    // After the loop was stuck, what has arrived meanwhile is still to be read: only then silence means anything.
    const late = now - this.#watchedAt > 2 * WATCH_EVERY_MS;
    this.#watchedAt = now;
    if (late) this.#heardAt = Math.max(this.#heardAt, now - IDLE_HEARTBEAT_MS);
    if (this.#requests.length === 0 || now - this.#heardAt <= SILENCE_MS) return;
    this.#saySilence(now - this.#heardAt);
    this.forget();
    this.#options.onSettled();
  }

  async #recreate(): Promise<void> {
    if (this.#recreating || this.#stopped) return;
    this.#recreating = true;
    try {
      await this.#options.recreate();
    } catch (error) {
      this.#sayLost(error);
    } finally {
      this.#recreating = false;
      this.#options.onSettled();
    }
  }
}
