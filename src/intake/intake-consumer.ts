import { AckPolicy, DeliverPolicy, type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import { type NatsConnection, nanos } from '@nats-io/transport-node';
import { askAgain } from '../log/ask-again.ts';
import { isRefusal } from '../log/refusal.ts';
import type { Names } from '../log/subjects.ts';
import { orUnavailable } from '../log/unavailable.ts';

export const INTAKE_CONSUMER = 'intake';
const ACK_WAIT_MS = 30_000;
/** Submissions wait for the answer, and can do without it. */
const ANSWER_WITHIN_MS = 2_000;

interface IntakeConsumerOptions {
  readonly nc: NatsConnection;
  readonly names: Pick<Names, 'streams'>;
  /** Messages that may be delivered and not acked: when there are so many, only those come that came before. */
  readonly maxAckPending: number;
}

/** The durable consumer of SUBMISSIONS that all API processes share. */
export class IntakeConsumer {
  readonly #options: IntakeConsumerOptions;

  constructor(options: IntakeConsumerOptions) {
    this.#options = options;
  }

  /** Makes it. Of one that exists only `max_ack_pending` is changed, as the limit follows from a setting; the rest is an operator's choice. */
  async ensure(): Promise<void> {
    const { names, maxAckPending } = this.#options;
    const stream = names.streams.submissions;
    await orUnavailable(async () => {
      const { consumers } = await this.#manager();
      await askAgain(() =>
        consumers.add(stream, {
          durable_name: INTAKE_CONSUMER,
          description: 'Validates submissions; shared by all API processes',
          ack_policy: AckPolicy.Explicit,
          ack_wait: nanos(ACK_WAIT_MS),
          deliver_policy: DeliverPolicy.All,
          max_deliver: -1,
          max_ack_pending: maxAckPending,
        }),
      ).catch((error: unknown) => {
        if (!isRefusal(error, 'consumer_exists')) throw error;
        return askAgain(() => consumers.update(stream, INTAKE_CONSUMER, { max_ack_pending: maxAckPending }));
      });
    });
  }

  /** Messages that are delivered and not acked yet, at all processes: in work, or sent back to come again. */
  async ackPending(): Promise<number> {
    const { names } = this.#options;
    const { consumers } = await this.#manager({ timeout: ANSWER_WITHIN_MS });
    return (await consumers.info(names.streams.submissions, INTAKE_CONSUMER)).num_ack_pending;
  }

  #manager(options: { readonly timeout?: number } = {}): Promise<JetStreamManager> {
    return jetstreamManager(this.#options.nc, { checkAPI: false, ...options });
  }
}
