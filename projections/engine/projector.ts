import type { NatsConnection } from '@nats-io/transport-node';
import type pg from 'pg';
import { TaskledgerError } from '../../src/domain/errors.ts';
import type { Names } from '../../src/log/subjects.ts';
import type { Logger } from '../../src/observe/log.ts';
import type { Clock } from '../../src/platform/clock.ts';
import type { Config } from '../../src/platform/config.ts';
import type { Service } from '../../src/platform/service.ts';
import { aheadOf, LOOK_AGAIN_MS, looksBefore } from './ahead.ts';
import { beginCheckpoints, type Checkpoint, loadCheckpoints, Superseded } from './checkpoint.ts';
import { Committer } from './committer.ts';
import { Connection, pause } from './connection.ts';
import { LogInspector, type LogState } from './log-state.ts';
import { planStretch } from './plan.ts';
import { Positions } from './positions.ts';
import type { Progress, Projection } from './projection.ts';
import { Stretch } from './stretch.ts';

/**
 * Moves of a projector:
 *
 *   starting -> leading | halted       checkpoints loaded; halted when every projection was stopped by an alarm
 *   leading  -> standby                another projector moved a checkpoint first
 *   leading  -> leading                a new stretch: HISTORY ended, the reader skipped something, the log looks wrong
 *   leading  -> standby -> leading     the tables were gone, and are made anew without checkpoints
 *   standby  -> leading                the checkpoints have stood still for a while though the log goes on, or there are none
 *   halted   -> leading                the log is back
 */
export type ProjectorMode = 'starting' | 'leading' | 'standby' | 'halted' | 'stopped';

export interface ProjectorStats {
  readonly mode: ProjectorMode;
  /** Events that the log has and the slowest projection does not reflect, as last known. */
  readonly lag: number;
  readonly positions: Readonly<Record<string, number>>;
  /** Over the last seconds. */
  readonly eventsPerSecond: number;
  readonly batches: number;
  /** Why Postgres cannot be written at the moment. */
  readonly outage: string | undefined;
  /** Projections that an alarm has stopped, with the reason and what to do. */
  readonly stopped: Readonly<Record<string, string>>;
  /** Events set aside since the start. */
  readonly poisoned: number;
}

export interface Projector extends Service {
  /** Sequence that the projection reflects, as far as this process knows. */
  position(projection: string): number;
  /** Resolves when every projection reflects `seq`; rejects with `shutting_down`. */
  whenCaughtUp(seq: number): Promise<void>;
  stats(): ProjectorStats;
}

export interface ProjectorParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly config: Pick<Config, 'projectorBatchEvents' | 'projectorBatchMs'>;
  /** One connection of it is kept while the projector runs. */
  readonly pool: pg.Pool;
  readonly projections: readonly Projection[];
  /** Applies the migrations that the database lacks, when it was emptied or replaced meanwhile. */
  readonly migrate?: () => Promise<{ readonly applied: readonly string[] }>;
  /** Says which day it is, and so what is too old to be kept. */
  readonly clock: Clock;
  readonly logger: Logger;
}

const STANDBY_POLL_MS = 500;
/** Longer than any healthy transaction takes. */
const TAKEOVER_MS = 3_000;
const RECHECK_MS = 2_000;

/**
 * Feeds the read models from the log. Any number may run against one database: compare-and-set on the checkpoints lets
 * one lead and makes the others stand by. Never fails to start: while Postgres is away it waits.
 */
export function createProjector(parts: ProjectorParts): Projector {
  return new LogProjector(parts);
}

class LogProjector implements Projector {
  readonly name = 'projector';
  readonly #parts: ProjectorParts;
  readonly #logger: Logger;
  readonly #inspector: LogInspector;
  readonly #connection: Connection;
  readonly #committer: Committer;
  readonly #positions: Positions;
  readonly #stopping = new AbortController();
  readonly #stopped = new Map<string, TaskledgerError>();
  #mode: ProjectorMode = 'starting';
  #running: Promise<void> | undefined;
  #stretch: Stretch | undefined;

  constructor(parts: ProjectorParts) {
    this.#parts = parts;
    this.#logger = parts.logger.child({ part: 'projector' });
    this.#inspector = new LogInspector(parts);
    this.#positions = new Positions(parts);
    this.#connection = new Connection({
      pool: parts.pool,
      logger: this.#logger,
      stopping: this.#stopping.signal,
      lag: () => this.#positions.lag(),
      makeTables: parts.migrate && (async () => (await parts.migrate?.())?.applied.length !== 0),
    });
    this.#committer = new Committer({ connection: this.#connection, logger: this.#logger });
  }

  async start(): Promise<void> {
    this.#running ??= this.#run();
  }

  /** Lets the transaction at hand finish. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    this.#stretch?.end();
    await this.#running;
    this.#connection.close();
    this.#positions.close();
    this.#mode = 'stopped';
  }

  position(projection: string): number {
    return this.#positions.of(projection);
  }

  whenCaughtUp(seq: number): Promise<void> {
    return this.#positions.whenCaughtUp(seq);
  }

  stats(): ProjectorStats {
    return {
      mode: this.#mode,
      ...this.#positions.stats(),
      outage: this.#connection.outage()?.reason,
      stopped: Object.fromEntries(
        [...this.#stopped].map(([name, { message, fix }]) => [name, `${message}. ${fix}`]),
      ),
      poisoned: this.#committer.poisoned(),
    };
  }

  async #run(): Promise<void> {
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#runOnce();
      } catch (error) {
        if (this.#stopping.signal.aborted) return;
        if (error instanceof Superseded) this.#enter('standby');
        else {
          this.#logger.error({ error }, 'the projector starts over');
          await pause(RECHECK_MS, this.#stopping.signal);
        }
      }
    }
  }

  /** One stretch: from the checkpoints on, until something asks for a fresh look. */
  async #runOnce(): Promise<void> {
    if (this.#mode === 'standby') await this.#standBy();
    if (this.#stopping.signal.aborted) return;
    const { log, progress } = await this.#open();
    if (progress.length === 0) {
      this.#enter('halted');
      await pause(RECHECK_MS, this.#stopping.signal);
      return;
    }
    this.#enter('leading');
    const fromSeq = Math.min(...progress.map(({ seq }) => seq)) + 1;
    const plan = await planStretch({ inspector: this.#inspector, logger: this.#logger }, log, fromSeq);
    this.#stretch = new Stretch(
      {
        ...this.#parts,
        logger: this.#logger,
        inspector: this.#inspector,
        committer: this.#committer,
        positions: this.#positions,
        maintain: () => this.#maintain(),
      },
      { plan, log, progress },
    );
    // Told to stop while the plan was made: there was no stretch to end yet.
    if (this.#stopping.signal.aborted) return;
    await this.#stretch.run();
  }

  /** Loads the checkpoints and stops the projections that the log cannot feed. */
  async #open(): Promise<{ log: LogState; progress: Progress[] }> {
    const names = this.#parts.projections.map(({ name }) => name);
    for (let tries = 1; ; tries++) {
      const log = await this.#inspector.state();
      const checkpoints = await this.#connection.run(async (client) => {
        await beginCheckpoints(client, names, log.logId);
        return loadCheckpoints(client, names);
      });
      const ahead = aheadOf(checkpoints, log);
      const unconfirmed = ahead.filter(({ name }) => !this.#stopped.has(name));
      if (unconfirmed.length > 0 && tries < looksBefore(unconfirmed, log) && !this.#stopping.signal.aborted) {
        await pause(LOOK_AGAIN_MS, this.#stopping.signal);
        continue;
      }
      return { log, progress: this.#admit(checkpoints, ahead, log) };
    }
  }

  #admit(checkpoints: readonly Checkpoint[], ahead: readonly Checkpoint[], log: LogState): Progress[] {
    this.#positions.load(checkpoints, log.lastSeq);
    for (const name of this.#stopped.keys()) {
      if (!ahead.some((each) => each.name === name)) this.#stopped.delete(name);
    }
    for (const { name, seq, logId } of ahead) {
      if (this.#stopped.has(name)) continue;
      const error = new TaskledgerError('projection_ahead_of_log', {
        projection: name,
        position: seq,
        expected: logId,
        lastSeq: log.lastSeq,
        actual: log.logId,
      });
      this.#stopped.set(name, error);
      this.#logger.error({ alarm: 'backwards', projection: name, error, fix: error.fix }, error.message);
    }
    return this.#parts.projections
      .filter(({ name }) => !this.#stopped.has(name))
      .map((projection) => ({ projection, seq: this.#positions.of(projection.name) }));
  }

  /** Housekeeping that fails is tried again an hour later; it never holds up the events. */
  async #maintain(): Promise<void> {
    const { clock, projections } = this.#parts;
    for (const projection of projections) {
      try {
        await this.#connection.run(async (client) => projection.maintain?.(client, clock.now()));
      } catch (error) {
        if (this.#stopping.signal.aborted) throw error;
        this.#logger.warn({ projection: projection.name, error }, 'housekeeping failed');
      }
    }
  }

  /** Returns when this projector should lead: the checkpoints stand still while the log goes on, or are not there. */
  async #standBy(): Promise<void> {
    const names = this.#parts.projections.map(({ name }) => name).filter((name) => !this.#stopped.has(name));
    let seen = -1;
    let behindSince: number | undefined;
    while (!this.#stopping.signal.aborted) {
      const { lastSeq } = await this.#inspector.state();
      const checkpoints = await this.#connection.run((client) => loadCheckpoints(client, names));
      if (checkpoints.length < names.length) return;
      this.#positions.load(checkpoints, lastSeq);
      const least = Math.min(...checkpoints.map(({ seq }) => seq));
      const now = performance.now();
      if (least !== seen || least >= lastSeq) behindSince = undefined;
      else behindSince ??= now;
      if (behindSince !== undefined && now - behindSince >= TAKEOVER_MS) return;
      seen = least;
      await pause(STANDBY_POLL_MS, this.#stopping.signal);
    }
  }

  #enter(mode: ProjectorMode): void {
    if (mode === this.#mode) return;
    this.#logger.info({ from: this.#mode, to: mode, lag: this.#positions.lag() }, 'projector mode');
    this.#mode = mode;
  }
}
