import { connect } from '@nats-io/transport-node';
import { createProjector } from '../../projections/engine/projector.ts';
import { projections } from '../../projections/projections.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { createLogger } from '../../src/observe/log.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { migrate } from '../../src/platform/migrate.ts';
import { createPool } from '../../src/platform/postgres.ts';
import { cpuSeconds } from './accounting.ts';
import { fillLog } from './fill-log.ts';
import type { LivesOptions } from './task-lives.ts';

export interface ProjectionRateOptions extends LivesOptions {
  readonly natsUrl: string;
  /** Empty, or at least without read models of this prefix. */
  readonly databaseUrl: string;
  readonly postgresPid: number;
  readonly prefix?: string;
  readonly settings?: Readonly<Record<string, string>>;
}

export interface ProjectionRate {
  readonly events: number;
  readonly seconds: number;
  readonly eventsPerSecond: number;
  readonly batches: number;
  /** Microseconds of CPU an event: this process reads, folds and sends; Postgres writes. */
  readonly projectorMicros: number;
  readonly postgresMicros: number;
}

/** Fills a log with whole task lives, then projects it from the beginning with all read models, as fast as it goes. */
export async function projectionRate(options: ProjectionRateOptions): Promise<ProjectionRate> {
  const { natsUrl, databaseUrl, postgresPid, prefix = 'rate_' } = options;
  const config = loadConfig({
    NATS_URL: natsUrl,
    DATABASE_URL: databaseUrl,
    TASKLEDGER_LOG_LEVEL: 'warn',
    ...options.settings,
  });
  const logger = createLogger(config);
  const names = namesOf(prefix);
  await migrate(databaseUrl, { logger });
  const nc = await connect({ servers: natsUrl });
  const pool = createPool(config, 'projection rate');
  try {
    await ensureStreams({ nc, names, config, logger });
    const events = await fillLog(nc, names, options);
    const before = { cpu: process.cpuUsage(), postgres: cpuSeconds([postgresPid]), at: performance.now() };
    const projector = createProjector({
      nc,
      names,
      config,
      pool,
      clock: systemClock,
      logger,
      projections: projections(config),
    });
    await projector.start();
    await projector.whenCaughtUp(events);
    const seconds = (performance.now() - before.at) / 1_000;
    const cpu = process.cpuUsage(before.cpu);
    const postgresSeconds = cpuSeconds([postgresPid]) - before.postgres;
    const { batches } = projector.stats();
    await projector.stop();
    return {
      events,
      seconds,
      eventsPerSecond: events / seconds,
      batches,
      projectorMicros: (cpu.user + cpu.system) / events,
      postgresMicros: (postgresSeconds * 1e6) / events,
    };
  } finally {
    await pool.end();
    await nc.close();
  }
}
