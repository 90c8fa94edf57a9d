import type { Job, JobKind, JobPhase, JobReport, JobState } from './job.ts';

/** A projector that is not heard of for so long has lost its job. */
const SILENCE = '15 seconds';

const COLUMNS = `id, kind, projections, schema_name, until_seq, state, phase, position, target, events_per_second,
  report, error, requested_by, requested_at, started_at, finished_at`;

interface JobRow {
  readonly id: string;
  readonly kind: JobKind;
  readonly projections: string[];
  readonly schema_name: string;
  readonly until_seq: string | null;
  readonly state: JobState;
  readonly phase: JobPhase | null;
  readonly position: string;
  readonly target: string;
  readonly events_per_second: number;
  readonly report: JobReport | null;
  readonly error: string | null;
  readonly requested_by: string;
  readonly requested_at: Date;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
}

const jobOf = (row: JobRow): Job => ({
  id: row.id,
  kind: row.kind,
  projections: row.projections,
  schema: row.schema_name,
  untilSeq: row.until_seq === null ? null : Number(row.until_seq),
  state: row.state,
  phase: row.phase,
  position: Number(row.position),
  target: Number(row.target),
  eventsPerSecond: row.events_per_second,
  report: row.report,
  error: row.error,
  requestedBy: row.requested_by,
  requestedAt: row.requested_at.toISOString(),
  startedAt: row.started_at?.toISOString() ?? null,
  finishedAt: row.finished_at?.toISOString() ?? null,
});

/** Whoever puts statements to Postgres: a pool, or what stands before one. */
export interface Asker {
  query<Row extends object>(text: string, values: unknown[]): Promise<{ readonly rows: Row[] }>;
}

async function jobs(asker: Asker, text: string, values: unknown[]): Promise<Job[]> {
  return (await asker.query<JobRow>(text, values)).rows.map(jobOf);
}

export interface JobRequest {
  readonly id: string;
  readonly kind: JobKind;
  readonly projections: readonly string[];
  readonly schema: string;
  readonly untilSeq: number | null;
  readonly requestedBy: string;
}

/** Undefined when another job has the schema. */
export async function insertJob(asker: Asker, request: JobRequest): Promise<Job | undefined> {
  const [job] = await jobs(
    asker,
    `insert into projection_job (id, kind, projections, schema_name, until_seq, requested_by)
     values ($1, $2, $3, $4, $5, $6)
     on conflict (schema_name) where state in ('waiting', 'running', 'stopped') do nothing
     returning ${COLUMNS}`,
    [request.id, request.kind, request.projections, request.schema, request.untilSeq, request.requestedBy],
  );
  return job;
}

export const newestJobs = (asker: Asker, limit: number): Promise<Job[]> =>
  jobs(asker, `select ${COLUMNS} from projection_job order by requested_at desc limit $1`, [limit]);

export const activeJobOn = async (asker: Asker, schema: string): Promise<Job | undefined> =>
  (
    await jobs(
      asker,
      `select ${COLUMNS} from projection_job
       where schema_name = $1 and state in ('waiting', 'running', 'stopped')`,
      [schema],
    )
  )[0];

export const jobById = async (asker: Asker, id: string): Promise<Job | undefined> =>
  (await jobs(asker, `select ${COLUMNS} from projection_job where id = $1`, [id]))[0];

/** A running job's projector stops it within a second; one that nobody runs is stopped at once. */
export const stopJob = async (asker: Asker, id: string): Promise<Job | undefined> =>
  (
    await jobs(
      asker,
      `update projection_job set stop_requested = (state = 'running'),
         state = case when state = 'waiting' then 'stopped' else state end
       where id = $1 and state in ('waiting', 'running') returning ${COLUMNS}`,
      [id],
    )
  )[0];

export const resumeJob = async (asker: Asker, id: string): Promise<Job | undefined> =>
  (
    await jobs(
      asker,
      `update projection_job set state = 'waiting', stop_requested = false
       where id = $1 and state = 'stopped' returning ${COLUMNS}`,
      [id],
    )
  )[0];

export const discardJob = async (asker: Asker, id: string): Promise<Job | undefined> =>
  (
    await jobs(
      asker,
      `update projection_job set state = 'discarded', finished_at = now()
       where id = $1 and state = 'stopped' returning ${COLUMNS}`,
      [id],
    )
  )[0];

/** Takes the oldest job that nobody works on. */
export const claimJob = async (asker: Asker, runner: string): Promise<Job | undefined> =>
  (
    await jobs(
      asker,
      `update projection_job set state = 'running', runner = $1, heard_at = now(),
         started_at = coalesce(started_at, now())
       where id = (
         select id from projection_job
         where state = 'waiting' or (state = 'running' and heard_at < now() - interval '${SILENCE}')
         order by requested_at limit 1 for update skip locked)
       returning ${COLUMNS}`,
      [runner],
    )
  )[0];

export interface JobProgress {
  readonly phase: JobPhase;
  readonly position: number;
  readonly target: number;
  readonly eventsPerSecond: number;
}

/** Tells how far it is. Answers whether to go on: `lost` when somebody else has taken the job. */
export async function reportProgress(
  asker: Asker,
  { id, runner }: { id: string; runner: string },
  progress: JobProgress,
): Promise<'go on' | 'stop' | 'lost'> {
  const { rows } = await asker.query<{ stop_requested: boolean }>(
    `update projection_job
     set phase = $3, position = $4, target = $5, events_per_second = $6, heard_at = now()
     where id = $1 and runner = $2 and state = 'running' returning stop_requested`,
    [id, runner, progress.phase, progress.position, progress.target, Math.round(progress.eventsPerSecond)],
  );
  if (rows[0] === undefined) return 'lost';
  return rows[0].stop_requested ? 'stop' : 'go on';
}

/** The end of a run. Nothing happens when somebody else has taken the job. */
export async function leaveJob(
  asker: Asker,
  { id, runner }: { id: string; runner: string },
  outcome: { state: Exclude<JobState, 'running'>; report?: JobReport; error?: string },
): Promise<void> {
  await asker.query(
    `update projection_job set state = $3, report = $4, error = $5, runner = null,
       position = coalesce(($4::json ->> 'position')::bigint, position),
       finished_at = case when $3 in ('done', 'failed') then now() end
     where id = $1 and runner = $2 and state = 'running'`,
    [
      id,
      runner,
      outcome.state,
      outcome.report === undefined ? null : JSON.stringify(outcome.report),
      outcome.error ?? null,
    ],
  );
}
