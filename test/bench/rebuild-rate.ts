import { jetstreamManager } from '@nats-io/jetstream';
import { createProjectionDesk } from '../../projections/engine/rebuild/desk.ts';
import { differences, type Job } from '../../projections/engine/rebuild/job.ts';
import { createRebuilder } from '../../projections/engine/rebuild/rebuilder.ts';
import { projections } from '../../projections/projections.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { silentLogger as logger } from '../../src/observe/log.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { connectNats } from '../../src/platform/nats.ts';
import { createPool } from '../../src/platform/postgres.ts';
import { cpuSeconds } from './accounting.ts';
import { fillLog } from './fill-log.ts';

export interface RebuildRateOptions {
  readonly natsUrl: string;
  /** Migrated, with empty read models. */
  readonly databaseUrl: string;
  readonly pids: { readonly nats: readonly number[]; readonly postgres: readonly number[] };
  readonly tasks: number;
  readonly log: (line: string) => void;
}

export interface JobRate {
  readonly seconds: number;
  readonly eventsPerSecond: number;
  /** CPU microseconds an event. */
  readonly micros: { readonly projector: number; readonly nats: number; readonly postgres: number };
}

export interface RebuildRate {
  readonly events: number;
  readonly rebuild: JobRate;
  readonly verify: JobRate;
}

/** The hot window has moved on over so much of the log: the rest is in HISTORY alone. */
const AGED = 0.9;
const LOOK_MS = 50;

/** Fills a log, lets most of it age out of TASKS, and then rebuilds and verifies all read models from HISTORY and the tail. */
export async function rebuildRate(options: RebuildRateOptions): Promise<RebuildRate> {
  const { natsUrl, databaseUrl, pids, tasks, log } = options;
  const config = loadConfig({ NATS_URL: natsUrl, DATABASE_URL: databaseUrl });
  const names = namesOf('');
  const nc = await connectNats(config, 'rebuild rate');
  const pool = createPool({ ...config, databaseTimeoutMs: 600_000 }, 'rebuild rate');
  const rebuilder = createRebuilder({
    nc,
    names,
    pool,
    projections: () => projections(config),
    clock: systemClock,
    logger,
  });
  try {
    await ensureStreams({ nc, names, config, logger });
    const jsm = await jetstreamManager(nc, { checkAPI: false });
    const events = await fillLog(nc, names, { tasks });
    while ((await jsm.streams.info(names.streams.history)).state.messages < events) await pause();
    await jsm.streams.purge(names.streams.tasks, { keep: Math.round(events * (1 - AGED)) });
    log(`${events} events are in HISTORY`);

    const desk = createProjectionDesk({
      postgres: pool,
      nc,
      names,
      projections: projections(config).map(({ name }) => name),
    });
    await rebuilder.start();
    const take = async (begin: () => Promise<Job>): Promise<JobRate> => {
      const cpu = {
        own: process.cpuUsage(),
        nats: cpuSeconds(pids.nats),
        postgres: cpuSeconds(pids.postgres),
      };
      const job = await ended(desk, await begin());
      const own = process.cpuUsage(cpu.own);
      const { kind, report } = job;
      const differing = (report?.tables ?? []).reduce((sum, table) => sum + differences(table), 0);
      if (report === null || differing > 0)
        throw new Error(`${kind} ended as ${job.state} with ${differing} differences: ${job.error ?? ''}`);
      log(`${kind} took ${report.seconds} s`);
      return {
        seconds: report.seconds,
        eventsPerSecond: events / report.seconds,
        micros: {
          projector: (own.user + own.system) / events,
          nats: ((cpuSeconds(pids.nats) - cpu.nats) * 1e6) / events,
          postgres: ((cpuSeconds(pids.postgres) - cpu.postgres) * 1e6) / events,
        },
      };
    };
    const rebuild = await take(() => desk.rebuild('all', { acceptLoss: false, by: 'bench' }));
    return { events, rebuild, verify: await take(() => desk.verify('all', { by: 'bench' })) };
  } finally {
    await rebuilder.stop();
    await pool.end();
    await nc.close();
  }
}

async function ended(desk: { job(id: string): Promise<Job> }, { id }: Job): Promise<Job> {
  for (;;) {
    const job = await desk.job(id);
    if (job.finishedAt !== null) return job;
    await pause();
  }
}

const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, LOOK_MS));
