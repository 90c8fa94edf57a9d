import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { ShorterLimits } from '../log/streams.ts';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config.ts';
import { judge } from './judge.ts';
import { openLogFacts } from './log-facts.ts';
import { openRetentionRecords } from './records.ts';

export interface ShrinkingParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly config: Pick<Config, 'retentionGuard'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/**
 * Asked before a stream gets a shorter limit: whether that takes what an unfinished task or a read model needs.
 * @throws TaskledgerError `retention_needed`, unless the configuration only wants to be warned
 */
export function refuseLoss({ nc, names, config, clock, logger }: ShrinkingParts) {
  return async (stream: string, shorter: ShorterLimits): Promise<void> => {
    const records = openRetentionRecords({ nc, names, logger });
    try {
      const log = await openLogFacts(nc, names);
      const streams = await log.streams();
      if (streams.lastSeq === 0) return;
      await records.mirror.start();
      const known = records.needs();
      // Nobody has said what is needed: everything is.
      const needs =
        known?.logId === streams.logId
          ? known
          : { kind: 'needs' as const, logId: '', position: 0, oldest: null, quietest: null, at: 0 };
      const ofStream = (name: string, limit: number | undefined): number =>
        stream === name && limit !== undefined ? limit : Number.POSITIVE_INFINITY;
      const limits = {
        hotWindowMs: ofStream(names.streams.tasks, shorter.maxAgeMs),
        historyMs: ofStream(names.streams.history, shorter.maxAgeMs),
        historyBytes: ofStream(names.streams.history, shorter.maxBytes),
      };
      const kept = await log.kept(needs, streams.history);
      const [danger] = judge(kept, limits, { now: clock.now(), part: 1, streams: names.streams });
      if (danger === undefined) return;
      const why = known === undefined ? 'no projector has said yet what it needs' : danger.why;
      if (config.retentionGuard === 'refuse')
        throw new TaskledgerError('retention_needed', { ...danger, why });
      logger.warn({ alarm: 'retention', ...danger, why }, 'a shorter limit takes what is still needed');
    } finally {
      await records.mirror.stop();
    }
  };
}
