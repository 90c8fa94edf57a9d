import type { Msg, NatsConnection, Subscription } from '@nats-io/transport-node';
import { createInbox } from '@nats-io/transport-node';

/**
 * One wildcard subscription that receives the answers to many requests, told apart by the last token of their
 * reply subject. A `nc.request` a call costs several times as much.
 */
export class Inbox {
  readonly #prefix: string;
  readonly #handlers = new Map<string, (message: Msg) => void>();
  readonly #subscription: Subscription;
  #last = 0;

  constructor(nc: NatsConnection) {
    this.#prefix = `${createInbox(inboxPrefixOf(nc))}.`;
    this.#subscription = nc.subscribe(`${this.#prefix}*`, {
      callback: (error, message) => {
        if (error) return;
        this.#handlers.get(message.subject.slice(this.#prefix.length))?.(message);
      },
    });
  }

  /** A token whose reply subject leads to `handler` until it is closed. */
  open(handler: (message: Msg) => void): string {
    this.#last += 1;
    const token = this.#last.toString(36);
    this.#handlers.set(token, handler);
    return token;
  }

  reply(token: string): string {
    return this.#prefix + token;
  }

  close(token: string): void {
    this.#handlers.delete(token);
  }

  end(): void {
    this.#handlers.clear();
    this.#subscription.unsubscribe();
  }
}

/** The connection's own prefix: its permissions may allow no other. The client's type does not show it. */
export const inboxPrefixOf = (nc: NatsConnection): string | undefined =>
  (nc as { options?: { inboxPrefix?: string } }).options?.inboxPrefix;
