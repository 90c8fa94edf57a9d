import type { Msg, MsgHdrs, NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { Logger } from '../observe/log.ts';
import type { Config } from '../platform/config.ts';
import { Inbox } from './inbox.ts';
import { type PubAck, parsePubAck } from './pub-ack.ts';
import { REFUSALS } from './refusal.ts';
import { Unconfirmed } from './unconfirmed.ts';

export type PublisherConfig = Pick<Config, 'appendInFlight' | 'appendTimeoutMs' | 'appendRetries'>;

/**
 * What a stream said about a message. `doubtful`: an earlier try of the same message may have been stored without our
 * hearing of it, so that a refusal may be caused by our own success.
 */
export type PublishOutcome =
  | { readonly status: 'stored'; readonly stream: string; readonly seq: number }
  | {
      readonly status: 'refused';
      readonly code: number;
      readonly description: string;
      readonly doubtful: boolean;
    };

const FIRST_TIMEOUT_MS = 1_000;
const SWEEP_MS = 50;
const MAX_BACKOFF_MS = 100;

/** A message, encoded once for all tries. */
export interface OutgoingMessage {
  readonly subject: string;
  readonly body: Uint8Array;
  /** The bytes of a `headerText`. */
  readonly headerBlock: Uint8Array | undefined;
}

interface Pending {
  readonly token: string;
  readonly message: OutgoingMessage;
  readonly options: { reply: string; headers?: MsgHdrs };
  readonly settle: (outcome: PublishOutcome) => void;
  readonly fail: (error: TaskledgerError) => void;
  readonly may: (() => boolean) | undefined;
  /** Performance clock, ms. */
  readonly giveUpAt: number;
  /** When the try is taken for lost; Infinity while it waits to be sent again. */
  lostAt: number;
  /** Tries whose outcome stayed unknown. */
  unknown: number;
  /** Refusals that called for another try. */
  refusals: number;
  lastReason: string;
}

/**
 * Publishes to streams, many at a time, and waits for their acknowledgements.
 *
 * Owner of the in-flight window: at most `appendInFlight` messages wait for an answer, later callers wait in order.
 * A message is sent again after a refusal that passes, after a timeout and after a reconnect, so a message without an
 * expectation can be stored twice. `js.publish` costs five times the CPU a call.
 */
export class Publisher {
  readonly #nc: NatsConnection;
  readonly #config: PublisherConfig;
  readonly #logger: Logger;
  readonly #inbox: Inbox;
  readonly #pending = new Map<string, Pending>();
  readonly #waiting: (() => void)[] = [];
  #waitingHead = 0;
  #taken = 0;
  #connected = true;
  #closed = false;
  readonly #unconfirmed = new Unconfirmed();
  readonly #sweep: NodeJS.Timeout;
  readonly #giveUpMs: number;

  constructor(nc: NatsConnection, config: PublisherConfig, logger: Logger) {
    this.#nc = nc;
    this.#config = config;
    this.#logger = logger;
    this.#inbox = new Inbox(nc, (token, message) => this.#answered(token, message));
    this.#giveUpMs = sum(config.appendRetries + 1, (n) => this.#timeoutOf(n));
    this.#sweep = setInterval(() => this.#sweepOnce(performance.now()), SWEEP_MS);
    this.#sweep.unref();
    void this.#watchConnection();
  }

  /**
   * Stores a message and answers where. Headers are name and value, both printable ASCII.
   * @throws TaskledgerError `log_unavailable` when no answer came in time, `log_refused` when the stream will not have it.
   */
  async publish(
    subject: string,
    data: Uint8Array | string,
    headers?: Readonly<Record<string, string>>,
  ): Promise<{ stream: string; seq: number }> {
    const outcome = await this.send({
      subject,
      body: typeof data === 'string' ? Buffer.from(data) : data,
      headerBlock: headers === undefined ? undefined : Buffer.from(headerText(headers)),
    });
    if (outcome.status === 'stored') return { stream: outcome.stream, seq: outcome.seq };
    throw new TaskledgerError('log_refused', { subject, code: outcome.code, reason: outcome.description });
  }

  /** Like `publish`, but a refusal is a value. `may` is asked before every try: once it says no, the message is given up. */
  send(message: OutgoingMessage, may?: () => boolean): Promise<PublishOutcome> {
    if (this.#taken < this.#config.appendInFlight) {
      this.#taken += 1;
      return this.#exchange(message, may);
    }
    return new Promise<void>((resolve) => this.#waiting.push(resolve)).then(() =>
      this.#exchange(message, may),
    );
  }

  /** Messages that wait for an answer, and callers that wait for room. */
  stats(): { inFlight: number; waiting: number } {
    return { inFlight: this.#pending.size, waiting: this.#waiting.length - this.#waitingHead };
  }

  /** Why nothing is stored though the servers can be reached. */
  trouble(): string | undefined {
    return this.#unconfirmed.trouble(performance.now());
  }

  /** Fails what is still in flight with `log_unavailable`. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    clearInterval(this.#sweep);
    for (const entry of this.#pending.values()) this.#giveUp(entry, 'the publisher was closed');
    this.#inbox.close();
  }

  /** Owns one place in the window, which `#forget` gives back. */
  #exchange(message: OutgoingMessage, may: (() => boolean) | undefined): Promise<PublishOutcome> {
    return new Promise((settle, fail) => {
      const token = this.#inbox.newToken();
      const reply = this.#inbox.reply(token);
      const entry: Pending = {
        token,
        message,
        options:
          message.headerBlock === undefined ? { reply } : { reply, headers: prebuilt(message.headerBlock) },
        settle,
        fail,
        may,
        giveUpAt: performance.now() + this.#giveUpMs,
        lostAt: Number.POSITIVE_INFINITY,
        unknown: 0,
        refusals: 0,
        lastReason: 'not connected',
      };
      this.#pending.set(token, entry);
      if (this.#closed) this.#giveUp(entry, 'the publisher was closed');
      else this.#transmit(entry);
    });
  }

  /** While disconnected nothing is sent: the client would throw it away at the next dial. */
  #transmit(entry: Pending): void {
    if (!this.#connected) return;
    if (entry.may?.() === false) {
      this.#giveUp(entry, 'whoever sent it no longer may');
      return;
    }
    entry.lostAt = performance.now() + this.#timeoutOf(entry.unknown);
    try {
      this.#nc.publish(entry.message.subject, entry.message.body, entry.options);
    } catch (error) {
      this.#giveUp(entry, (error as Error).message);
    }
  }

  #answered(token: string, message: Msg): void {
    const entry = this.#pending.get(token);
    if (entry === undefined) return;
    const ack = parsePubAck(message);
    if (ack.kind === 'stored') {
      this.#unconfirmed.over();
      this.#forget(entry);
      entry.settle({ status: 'stored', stream: ack.stream, seq: ack.seq });
    } else if (ack.kind === 'no_responders' || ack.passing) {
      this.#again(entry, ack);
    } else {
      this.#forget(entry);
      const { code, description } = ack;
      entry.settle({ status: 'refused', code, description, doubtful: entry.unknown > 0 });
    }
  }

  /** Sends again a little later. Refusals count against the time only, so that an election can be waited out. */
  #again(entry: Pending, refusal: Exclude<PubAck, { kind: 'stored' }>): void {
    // An answer to an earlier try, while a later one is already scheduled.
    if (entry.lostAt === Number.POSITIVE_INFINITY) return;
    const surelyNotStored = refusal.kind === 'no_responders' || refusal.code === REFUSALS.key_in_flight;
    if (!surelyNotStored) entry.unknown += 1;
    this.#missed(entry, refusal.description);
    const backoffMs = Math.min(MAX_BACKOFF_MS, 2 ** Math.min(entry.refusals, 10));
    entry.refusals += 1;
    entry.lostAt = Number.POSITIVE_INFINITY;
    setTimeout(() => {
      if (this.#pending.has(entry.token)) this.#transmit(entry);
    }, backoffMs);
  }

  #sweepOnce(now: number): void {
    for (const entry of this.#pending.values()) {
      if (now >= entry.giveUpAt) {
        if (entry.lostAt !== Number.POSITIVE_INFINITY) entry.unknown += 1;
        this.#giveUp(entry, entry.lastReason);
      } else if (now >= entry.lostAt) {
        entry.unknown += 1;
        this.#missed(entry, 'no answer in time');
        this.#transmit(entry);
      }
    }
  }

  #missed(entry: Pending, reason: string): void {
    entry.lastReason = reason;
    this.#unconfirmed.missed(reason, performance.now());
  }

  async #watchConnection(): Promise<void> {
    for await (const status of this.#nc.status()) {
      if (status.type === 'disconnect') {
        this.#connected = false;
        for (const entry of this.#pending.values()) {
          if (entry.lostAt === Number.POSITIVE_INFINITY) continue;
          entry.unknown += 1;
          entry.lostAt = Number.POSITIVE_INFINITY;
          entry.lastReason = 'disconnected';
        }
      } else if (status.type === 'reconnect') {
        this.#connected = true;
        this.#unconfirmed.over();
        if (this.#pending.size > 0)
          this.#logger.info({ inFlight: this.#pending.size }, 'sending again what was in flight');
        for (const entry of this.#pending.values()) {
          if (entry.lostAt === Number.POSITIVE_INFINITY) this.#transmit(entry);
        }
      }
    }
    if (!this.#closed) this.close();
  }

  #giveUp(entry: Pending, reason: string): void {
    this.#forget(entry);
    entry.fail(
      new TaskledgerError('log_unavailable', {
        reason,
        doubtful: entry.unknown > 0,
        tries: entry.unknown + entry.refusals,
      }),
    );
  }

  #forget(entry: Pending): void {
    this.#pending.delete(entry.token);
    this.#release();
  }

  #release(): void {
    const next = this.#waiting[this.#waitingHead];
    if (next === undefined) {
      this.#taken -= 1;
      return;
    }
    this.#waitingHead += 1;
    if (this.#waitingHead === this.#waiting.length || this.#waitingHead > 1_024) {
      this.#waiting.splice(0, this.#waitingHead);
      this.#waitingHead = 0;
    }
    next();
  }

  /** Short at first: after a leader change answers are lost, and a retry is safe. */
  #timeoutOf(unknown: number): number {
    return Math.min(this.#config.appendTimeoutMs, FIRST_TIMEOUT_MS * 1.5 ** Math.min(unknown, 20));
  }
}

/** A header block as text: printable ASCII. */
export function headerText(headers: Readonly<Record<string, string>>): string {
  let text = 'NATS/1.0\r\n';
  for (const [name, value] of Object.entries(headers)) text += `${name}: ${value}\r\n`;
  return `${text}\r\n`;
}

/** Header block and body share one buffer, written in one go. */
export function encodeMessage(subject: string, headers: string, body: string): OutgoingMessage {
  const bytes = Buffer.from(headers + body);
  return { subject, headerBlock: bytes.subarray(0, headers.length), body: bytes.subarray(headers.length) };
}

/** The client asks a message's headers for nothing but their bytes. */
const prebuilt = (block: Uint8Array): MsgHdrs => ({ encode: () => block }) as unknown as MsgHdrs;

const sum = (times: number, term: (n: number) => number): number =>
  Array.from({ length: times }, (_, n) => term(n)).reduce((total, ms) => total + ms, 0);
