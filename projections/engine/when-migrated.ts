import { setTimeout as pause } from 'node:timers/promises';
import { TaskledgerError } from '../../src/domain/errors.ts';
import type { Logger } from '../../src/observe/log.ts';
import type { Config } from '../../src/platform/config.ts';
import { migrate } from '../../src/platform/migrate.ts';
import { Patience } from '../../src/platform/patience.ts';
import { postgresReason } from '../../src/platform/postgres.ts';
import type { Service } from '../../src/platform/service.ts';

const RETRY_MS = 1_000;

export interface WaitingService extends Service {
  /** Why the service has not been started yet. */
  waitsFor(): string | undefined;
}

/**
 * Starts a service once the migrations are applied. While Postgres is away `start` does not wait for it: the service
 * starts when it is back, and the rest of the process works meanwhile. A migration that fails is thrown.
 */
export function whenMigrated(
  service: Service,
  { config, logger }: { config: Pick<Config, 'databaseUrl'>; logger: Logger },
): WaitingService {
  const stopping = new AbortController();
  let later: Promise<void> | undefined;
  let reason: string | undefined = 'not started';
  const attempt = async (patience: Patience): Promise<boolean> => {
    try {
      await patience.unlessStopped(migrate(config.databaseUrl, { logger }));
    } catch (error) {
      if (error instanceof TaskledgerError) throw error;
      reason = `Postgres cannot be reached: ${postgresReason(error)}`;
      return false;
    }
    if (!stopping.signal.aborted) await service.start(patience);
    reason = undefined;
    return true;
  };
  const keepTrying = async (): Promise<void> => {
    const patience = new Patience({ forMs: Number.POSITIVE_INFINITY, signal: stopping.signal });
    while (!stopping.signal.aborted) {
      await pause(RETRY_MS, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      try {
        if (await attempt(patience)) return logger.info({}, 'Postgres can be reached: read models go on');
      } catch (error) {
        if (stopping.signal.aborted) return;
        reason = (error as Error).message;
        logger.error({ err: error }, 'the migrations cannot be applied; trying again');
      }
    }
  };
  return {
    name: service.name,
    waitsFor: () => reason,
    async start(patience = new Patience()) {
      if (await attempt(patience)) return;
      logger.warn({ reason }, 'Postgres cannot be reached: read models stand still until it is back');
      later = keepTrying();
    },
    async stop() {
      stopping.abort();
      await later;
      await service.stop();
    },
  };
}
