import { createInbox, type Msg, type NatsConnection, type Subscription } from '@nats-io/transport-node';

/**
 * One wildcard subscription that receives the answers to many requests, told apart by the last token of their
 * reply subject. A `nc.request` a call costs several times as much.
 */
export class Inbox {
  readonly #nc: NatsConnection;
  readonly #prefix: string;
  readonly #subscription: Subscription;
  #last = 0;

  /** `receive` gets every message with its token; a token that is no longer known is its to ignore. */
  constructor(nc: NatsConnection, receive: (token: string, message: Msg) => void) {
    this.#nc = nc;
    this.#prefix = `${createInbox(inboxPrefixOf(nc))}.`;
    this.#subscription = nc.subscribe(`${this.#prefix}*`, {
      callback: (error, message) => {
        if (!error) receive(message.subject.slice(this.#prefix.length), message);
      },
    });
  }

  newToken(): string {
    this.#last += 1;
    return this.#last.toString(36);
  }

  reply(token: string): string {
    return this.#prefix + token;
  }

  close(): void {
    if (!this.#nc.isClosed()) this.#subscription.unsubscribe();
  }
}

/** The connection's own prefix: its permissions may allow no other. The client's type does not show it. */
export const inboxPrefixOf = (nc: NatsConnection): string | undefined =>
  (nc as { options?: { inboxPrefix?: string } }).options?.inboxPrefix;
