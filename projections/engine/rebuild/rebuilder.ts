import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import type pg from 'pg';
import { TaskledgerError } from '../../../src/domain/errors.ts';
import type { Names } from '../../../src/log/subjects.ts';
import type { Logger } from '../../../src/observe/log.ts';
import type { Clock } from '../../../src/platform/clock.ts';
import { isDataError, postgresReason } from '../../../src/platform/postgres.ts';
import type { Service } from '../../../src/platform/service.ts';
import { pause } from '../connection.ts';
import { LogInspector } from '../log-state.ts';
import type { ReadModel } from '../projection.ts';
import { Builder } from './builder.ts';
import { compareTables } from './compare.ts';
import type { Job, JobPhase, JobReport, TableReport } from './job.ts';
import { differences } from './job.ts';
import { claimJob, leaveJob, reportProgress } from './job-table.ts';
import { livePosition, onSameEvent, switchTables } from './live.ts';
import { dropAbandoned, dropShadow, makeIndexes, openShadow } from './shadow.ts';

export interface RebuilderParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  /** Of its own: index builds and comparisons outlast the time that queries are given. */
  readonly pool: pg.Pool;
  /** Makes them anew for every job: a projection may remember what it has seen of its tables. */
  readonly projections: () => readonly ReadModel[];
  /** Says which day it is, and so what is too old to be kept. */
  readonly clock: Clock;
  readonly logger: Logger;
}

const POLL_MS = 1_000;
const PROGRESS_MS = 500;
/** A job that is broken off again and again, and has come no further for so long, has failed. */
const NO_PROGRESS_MS = 15 * 60_000;
/** The tables follow the live ones; once so close, the switch holds up the projector only for a moment. */
const CLOSE_EVENTS = 5_000;
/** Idle passes between two looks for what jobs have left behind. */
const SWEEP_EVERY = 60;

/**
 * Works on the jobs of `projection_job`, one at a time; any number of them may run against one database. A job's tables
 * and checkpoints lie in a schema of its own, so whoever takes it up goes on where it was left.
 */
export function createRebuilder(parts: RebuilderParts): Service {
  const logger = parts.logger.child({ part: 'rebuilder' });
  const runner = randomUUID();
  const stopping = new AbortController();
  let running: Promise<void> | undefined;
  /** The job that was broken off last, how far it was, and since when (performance clock). */
  let stuck = { job: '', position: 0, since: 0 };

  /** One pass: what it returns is whether there was a job that need not wait. */
  const runOnce = async (): Promise<boolean> => {
    const job = await claimJob(parts.pool, runner);
    if (job === undefined) return false;
    const run = new JobRun({ ...parts, logger: logger.child({ job: job.id }) }, { job, runner });
    const mayGoOn = (position: number): boolean => {
      if (stuck.job !== job.id || position > stuck.position)
        stuck = { job: job.id, position, since: performance.now() };
      return performance.now() - stuck.since < NO_PROGRESS_MS;
    };
    return (await run.run(stopping.signal, mayGoOn)) !== 'broken off';
  };

  const sweep = async (): Promise<void> => {
    const schemas = await dropAbandoned(parts.pool);
    if (schemas.length > 0) logger.info({ schemas }, 'schemas of ended jobs dropped');
  };

  const run = async (): Promise<void> => {
    for (let pass = 0; !stopping.signal.aborted; pass += 1) {
      try {
        const worked = await runOnce();
        if (worked || pass % SWEEP_EVERY === 0) await sweep();
        if (worked) continue;
      } catch (error) {
        // The projector tells of an outage already.
        logger.debug({ error }, 'jobs cannot be read');
      }
      await pause(POLL_MS, stopping.signal);
    }
  };

  return {
    name: 'rebuilder',
    async start() {
      running ??= run();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** One run on a job, from taking it until its end, its stop, or the stop of this process. */
class JobRun {
  readonly #parts: RebuilderParts;
  readonly #job: Job;
  readonly #runner: string;
  readonly #end = new AbortController();
  readonly #models: readonly ReadModel[];
  readonly #inspector: LogInspector;
  readonly #builder: Builder;
  readonly #clock: Clock;
  readonly #startedAt = performance.now();
  #phase: JobPhase = 'reading';
  #target = 0;
  #stopAsked = false;

  constructor(parts: RebuilderParts, { job, runner }: { job: Job; runner: string }) {
    this.#parts = parts;
    this.#job = job;
    this.#runner = runner;
    this.#clock = parts.clock;
    this.#models = parts.projections().filter(({ name }) => job.projections.includes(name));
    this.#inspector = new LogInspector(parts);
    this.#builder = new Builder({
      ...parts,
      projections: this.#models,
      schema: job.schema,
      signal: this.#end.signal,
    });
  }

  /** `mayGoOn` is asked, with how far it is, when the servers have failed it in a way that may pass. */
  async run(
    processStops: AbortSignal,
    mayGoOn: (position: number) => boolean,
  ): Promise<'left' | 'broken off'> {
    const { pool, logger } = this.#parts;
    const { kind, projections, schema, position } = this.#job;
    const end = (): void => this.#end.abort();
    processStops.addEventListener('abort', end, { once: true });
    if (processStops.aborted) end();
    const progress = this.#reportProgress();
    const reporting = setInterval(() => void progress(), PROGRESS_MS);
    logger.info({ kind, projections, schema, from: position }, 'projection job begins');
    const leave = (outcome: Parameters<typeof leaveJob>[2]) => leaveJob(pool, this.#at, outcome);
    try {
      const report = await this.#work();
      await leave({ state: 'done', report });
      logger.info({ kind, projections, report: brief(report) }, 'projection job is done');
    } catch (error) {
      if (this.#end.signal.aborted) {
        await leave({ state: this.#stopAsked ? 'stopped' : 'waiting' });
        logger.info({ position: this.#builder.position() }, 'projection job is left');
      } else {
        const reason =
          error instanceof TaskledgerError ? `${error.code}: ${error.message}` : postgresReason(error);
        const position = this.#builder.position();
        if (mayPass(error) && mayGoOn(position)) {
          await leave({ state: 'waiting', error: reason });
          logger.warn({ reason, position }, 'projection job is broken off; it goes on from there');
          return 'broken off';
        }
        await leave({ state: 'failed', error: reason });
        logger.error({ error, reason }, 'projection job has failed');
      }
    } finally {
      clearInterval(reporting);
      processStops.removeEventListener('abort', end);
      this.#builder.close();
    }
    return 'left';
  }

  get #at(): { id: string; runner: string } {
    return { id: this.#job.id, runner: this.#runner };
  }

  async #work(): Promise<JobReport> {
    const { pool, logger } = this.#parts;
    const { schema, id, kind, untilSeq } = this.#job;
    await openShadow(pool, { schema, jobId: id, logger });
    // Tells the projections what is too old to be kept.
    await this.#builder.maintain(this.#clock.now());
    if (kind === 'build') {
      await this.#read(untilSeq ?? (await this.#inspector.state()).lastSeq);
      await this.#makeIndexes();
      return this.#report(this.#builder.position());
    }
    await this.#followLive();
    if (kind === 'verify') return this.#verify();
    await this.#makeIndexes();
    // Building the indexes took its time.
    await this.#followLive();
    // Partitions of coming days: the projector believes that those it has made are there.
    await this.#builder.maintain(this.#clock.now());
    this.#phase = 'switching';
    return this.#report(await switchTables(this.#live));
  }

  get #live() {
    const { pool } = this.#parts;
    const { schema } = this.#job;
    const log = () => this.#inspector.state();
    return { pool, projections: this.#models, builder: this.#builder, schema, log };
  }

  async #read(target: number): Promise<void> {
    this.#phase = 'reading';
    this.#target = target;
    await this.#builder.buildTo(target);
  }

  /** Reads until the live tables are only a few events ahead. */
  async #followLive(): Promise<void> {
    for (;;) {
      await this.#read(await livePosition(this.#live));
      if ((await livePosition(this.#live)) - this.#builder.position() <= CLOSE_EVENTS) return;
    }
  }

  async #makeIndexes(): Promise<void> {
    this.#phase = 'indexing';
    await makeIndexes(this.#parts.pool, this.#job.schema, this.#end.signal);
    for (const { name } of this.#models.flatMap(({ tables }) => tables))
      await this.#parts.pool.query(`analyze "${this.#job.schema}"."${name}"`);
  }

  async #verify(): Promise<JobReport> {
    const { schema } = this.#job;
    await this.#builder.maintain(this.#clock.now());
    this.#phase = 'comparing';
    const { tables, position } = await onSameEvent(this.#live, async (client, at) => {
      const reports: TableReport[] = [];
      // Asked after the build: what TASKS has now both sides had from it.
      const { firstSeq } = await this.#inspector.state();
      for (const table of this.#models.flatMap((model) => model.tables)) {
        this.#end.signal.throwIfAborted();
        reports.push(await compareTables(client, table, { live: at.live, built: schema, firstSeq }));
      }
      return { tables: reports, position: at.position };
    });
    await dropShadow(this.#parts.pool, schema);
    return { ...this.#report(position), tables };
  }

  #report(position: number): JobReport {
    const seconds = Math.round(performance.now() - this.#startedAt) / 1_000;
    return { position, seconds, poisoned: this.#builder.poisoned() };
  }

  /** Writes down how far it is, and hears whether to go on. */
  #reportProgress(): () => Promise<void> {
    let busy = false;
    let last = { position: 0, at: performance.now() };
    return async () => {
      if (busy) return;
      busy = true;
      const now = { position: this.#builder.position(), at: performance.now() };
      const rate = ((now.position - last.position) * 1_000) / (now.at - last.at);
      // The first look finds what an earlier run has done.
      const eventsPerSecond = last.position === 0 ? 0 : Math.max(0, rate);
      if (now.position !== last.position) last = now;
      const { position } = now;
      const progress = { phase: this.#phase, position, target: this.#target, eventsPerSecond };
      const answer = await reportProgress(this.#parts.pool, this.#at, progress).catch(() => 'go on' as const);
      if (answer === 'stop') this.#stopAsked = true;
      if (answer !== 'go on') this.#end.abort();
      busy = false;
    };
  }
}

/** Servers that were away, an election, a lock: not what a value or the catalogue says for good. */
const mayPass = (error: unknown): boolean =>
  error instanceof TaskledgerError ? error.retryable : !isDataError(error);

/** For the log: the sample stays in the job. */
const brief = ({ tables, ...rest }: JobReport) => ({
  ...rest,
  ...(tables === undefined
    ? {}
    : { differing: Object.fromEntries(tables.map((each) => [each.table, differences(each)])) }),
});
