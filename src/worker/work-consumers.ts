import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { ensureWorkConsumer } from '../log/streams.ts';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Config } from '../platform/config.ts';

export interface ConsumersWanted {
  readonly nc: NatsConnection;
  readonly names: Names;
  /** Asked for by the user; undefined takes what is there. */
  readonly ackWaitMs: number | undefined;
  readonly config: Pick<Config, 'ackWaitMs'>;
  readonly logger: Logger;
}

/**
 * Sees to it that the types' shared consumers exist, and answers their ack-waits in ms. What exists is changed only when
 * an ack-wait was asked for: all workers and the dispatcher share it. Throws `log_unavailable`.
 */
export async function ensureConsumers(
  { nc, names, ackWaitMs, config, logger }: ConsumersWanted,
  types: Iterable<string>,
): Promise<ReadonlyMap<string, number>> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const found = async (type: string): Promise<number | undefined> => {
    try {
      const info = await jsm.consumers.info(names.streams.tasks, names.workConsumer(type));
      return Math.round((info.config.ack_wait ?? 0) / 1e6) || undefined;
    } catch {
      return undefined;
    }
  };
  const ackWaits = new Map<string, number>();
  for (const type of types) {
    let actual = await found(type);
    if (actual === undefined || (ackWaitMs !== undefined && actual !== ackWaitMs)) {
      if (actual !== undefined)
        logger.info({ type, from: actual, to: ackWaitMs }, 'ack-wait of the type changed');
      await ensureWorkConsumer({ nc, names, config }, type);
      actual = (await found(type)) ?? config.ackWaitMs;
    }
    ackWaits.set(type, actual);
  }
  return ackWaits;
}
