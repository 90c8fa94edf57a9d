import { setTimeout as delay } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Logger } from '../observe/log.ts';
import type { Config } from '../platform/config.ts';
import { sparingly } from '../platform/patience.ts';
import type { Service } from '../platform/service.ts';
import type { StreamsConfig } from './stream-settings.ts';
import { findStream, makeBucket } from './streams.ts';
import type { Names } from './subjects.ts';

export interface BucketKeeper extends Service {
  /** One look; answers the buckets that it has made. */
  runOnce(): Promise<readonly string[]>;
}

interface KeeperParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly config: StreamsConfig & Pick<Config, 'leaderLeaseMs'>;
  readonly logger: Logger;
}

/**
 * Makes the buckets again that hold facts of the moment, when somebody has deleted them: who leads, which workers live,
 * what is left of rates. Without the first nobody would lead until a process starts. What an operator has set is not
 * made again: empty, it would look as if nothing had been set. Nor is anything while the log is gone, which is for a restore.
 *
 * A bucket has been gone for a lease before it is made, so that whoever led by the old one no longer does.
 */
export function createBucketKeeper({ nc, names, config, logger }: KeeperParts): BucketKeeper {
  const { leaders, workers, rates } = names.buckets;
  const stopping = new AbortController();
  const sayTrouble = sparingly((error: unknown) =>
    logger.warn({ reason: String(error) }, 'the buckets cannot be looked after; trying again'),
  );
  let goneBefore: readonly string[] = [];
  let running: Promise<void> | undefined;

  async function runOnce(): Promise<readonly string[]> {
    const jsm = await jetstreamManager(nc, { checkAPI: false });
    const gone: string[] = [];
    const logIsThere = (await findStream(jsm, names.streams.tasks)) !== undefined;
    if (logIsThere)
      for (const bucket of [leaders, workers, rates])
        if ((await findStream(jsm, `KV_${bucket}`)) === undefined) gone.push(bucket);
    const due = gone.filter((bucket) => goneBefore.includes(bucket));
    goneBefore = gone;
    for (const bucket of due) {
      await makeBucket({ nc, names, config }, bucket);
      logger.warn({ bucket }, 'a bucket was gone and is made again');
    }
    return due;
  }

  async function run(): Promise<void> {
    const { signal } = stopping;
    while (!signal.aborted) {
      await delay(config.leaderLeaseMs, undefined, { signal }).catch(() => undefined);
      if (signal.aborted || nc.isClosed()) return;
      await runOnce().catch((error: unknown) => {
        goneBefore = [];
        sayTrouble(error);
      });
    }
  }

  return {
    name: 'bucket keeper',
    runOnce,
    async start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
