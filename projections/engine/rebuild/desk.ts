import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../../../src/domain/errors.ts';
import type { Names } from '../../../src/log/subjects.ts';
import { orUnavailable } from '../../../src/log/unavailable.ts';
import { readModelUnavailable } from '../../../src/platform/postgres.ts';
import { LogInspector } from '../log-state.ts';
import type { Job, JobKind } from './job.ts';
import {
  type Asker,
  activeJobOn,
  discardJob,
  insertJob,
  jobById,
  newestJobs,
  resumeJob,
  stopJob,
} from './job-table.ts';

export interface ProjectionStatus {
  readonly name: string;
  /** Sequence that it reflects. */
  readonly position: number;
  /** Events of the log that it does not reflect yet. */
  readonly lag: number;
  /** When it moved last. */
  readonly movedAt: string;
  /** Events that it could not digest. */
  readonly poisoned: number;
}

export interface ProjectionsStatus {
  readonly log: { readonly firstSeq: number; readonly lastSeq: number };
  /** From here on the streams have every event: what rebuilding starts from. */
  readonly keptFromSeq: number;
  readonly projections: readonly ProjectionStatus[];
  /** The newest first. */
  readonly jobs: readonly Job[];
}

/** Where operators ask for work on the read models. Throws `read_model_unavailable`, `log_unavailable` and what each says. */
export interface ProjectionDesk {
  status(): Promise<ProjectionsStatus>;
  /** Throws `projection_job_not_found`. */
  job(id: string): Promise<Job>;
  /** `name`: one of them, or `all`. Throws `projection_unknown`, `projection_job_active`, `history_incomplete`. */
  rebuild(name: string, wish: { acceptLoss: boolean; by: string }): Promise<Job>;
  verify(name: string, wish: { by: string }): Promise<Job>;
  /** Tables as of a point, in a schema that does not exist yet. */
  build(wish: { schema: string; until: PointInLog; by: string }): Promise<Job>;
  /** Throw `projection_job_ended` when the job is not in a state for it. */
  stop(id: string): Promise<Job>;
  resume(id: string): Promise<Job>;
  discard(id: string): Promise<Job>;
}

/** Up to which event: a sequence, or what was stored by an instant (ms since 1970). */
export type PointInLog = { readonly seq: number } | { readonly at: number };

export interface DeskParts {
  /** A pool, or what refuses at once while Postgres is away: its errors of the catalogue pass. */
  readonly postgres: Asker;
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly projections: readonly string[];
}

const JOBS_SHOWN = 20;

export const createProjectionDesk = (parts: DeskParts): ProjectionDesk => new Desk(parts);

class Desk implements ProjectionDesk {
  readonly #postgres: Asker;
  readonly #projections: readonly string[];
  readonly #inspector: LogInspector;

  constructor({ postgres, nc, names, projections }: DeskParts) {
    this.#postgres = postgres;
    this.#projections = projections;
    this.#inspector = new LogInspector({ nc, names });
  }

  async status(): Promise<ProjectionsStatus> {
    const [{ firstSeq, lastSeq }, keptFromSeq] = await orUnavailable(() =>
      Promise.all([this.#inspector.state(), this.#inspector.firstKept()]),
    );
    const [{ rows }, jobs] = await ofPostgres(() =>
      Promise.all([
        this.#postgres.query<StatusRow>(STATUS, [this.#projections]),
        newestJobs(this.#postgres, JOBS_SHOWN),
      ]),
    );
    return {
      log: { firstSeq, lastSeq },
      keptFromSeq,
      projections: rows.map(({ name, seq, at, poisoned }) => ({
        name,
        position: Number(seq),
        lag: Math.max(0, lastSeq - Number(seq)),
        movedAt: at.toISOString(),
        poisoned: Number(poisoned),
      })),
      jobs,
    };
  }

  async job(id: string): Promise<Job> {
    const job = await ofPostgres(() => jobById(this.#postgres, id));
    if (job === undefined) throw new TaskledgerError('projection_job_not_found', { jobId: id });
    return job;
  }

  async rebuild(name: string, { acceptLoss, by }: { acceptLoss: boolean; by: string }): Promise<Job> {
    const projections = this.#chosen(name);
    const firstSeq = await orUnavailable(() => this.#inspector.firstKept());
    if (firstSeq > 1 && !acceptLoss) throw new TaskledgerError('history_incomplete', { firstSeq });
    return this.#ask({ kind: 'rebuild', projections, schema: `rebuild_${name}`, untilSeq: null, by });
  }

  async verify(name: string, { by }: { by: string }): Promise<Job> {
    const projections = this.#chosen(name);
    return this.#ask({ kind: 'verify', projections, schema: `verify_${name}`, untilSeq: null, by });
  }

  async build({ schema, until, by }: { schema: string; until: PointInLog; by: string }): Promise<Job> {
    const { rows } = await ofPostgres(() =>
      this.#postgres.query('select from pg_namespace where nspname = $1', [schema]),
    );
    if (rows.length > 0) throw new TaskledgerError('schema_in_use', { schema });
    const untilSeq = await orUnavailable(async () => {
      const { lastSeq } = await this.#inspector.state();
      return Math.min(lastSeq, 'seq' in until ? until.seq : await this.#inspector.lastSeqAt(until.at));
    });
    return this.#ask({ kind: 'build', projections: this.#projections, schema, untilSeq, by });
  }

  stop(id: string): Promise<Job> {
    return this.#move(id, 'stopped', stopJob);
  }

  resume(id: string): Promise<Job> {
    return this.#move(id, 'resumed', resumeJob);
  }

  discard(id: string): Promise<Job> {
    return this.#move(id, 'discarded', discardJob);
  }

  #chosen(name: string): readonly string[] {
    if (name === 'all') return this.#projections;
    if (!this.#projections.includes(name))
      throw new TaskledgerError('projection_unknown', { projection: name });
    return [name];
  }

  async #ask(request: {
    kind: JobKind;
    projections: readonly string[];
    schema: string;
    untilSeq: number | null;
    by: string;
  }): Promise<Job> {
    const { by, schema } = request;
    const job = await ofPostgres(() =>
      insertJob(this.#postgres, { ...request, id: randomUUID(), requestedBy: by }),
    );
    if (job !== undefined) return job;
    const active = await ofPostgres(() => activeJobOn(this.#postgres, schema));
    const { id: jobId = '', state = 'ended' } = active ?? {};
    throw new TaskledgerError('projection_job_active', { jobId, state, schema });
  }

  async #move(
    id: string,
    wish: string,
    how: (asker: Asker, id: string) => Promise<Job | undefined>,
  ): Promise<Job> {
    const moved = await ofPostgres(() => how(this.#postgres, id));
    if (moved !== undefined) return moved;
    const { state } = await this.job(id);
    throw new TaskledgerError('projection_job_ended', { jobId: id, state, wish });
  }
}

async function ofPostgres<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    throw error instanceof TaskledgerError ? error : readModelUnavailable(error);
  }
}

interface StatusRow {
  readonly name: string;
  readonly seq: string;
  readonly at: Date;
  readonly poisoned: string;
}
const STATUS = `
  select name, seq, at, (select count(*) from projection_poison p where p.projection = c.name) as poisoned
  from projection_checkpoint c where name = any($1) order by array_position($1, name)`;
