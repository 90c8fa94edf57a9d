import { type ErrorEntry, entry } from './entry.ts';

/** What is read from Postgres, and how it is built. */
export const readModelErrors = {
  read_model_unavailable: entry(
    503,
    true,
    'The read models cannot be reached: {reason}',
    'Submission and work go on; retry the query later.',
  ),
  position_not_reached: entry(
    504,
    true,
    'The read models reflect {position}, not yet {wanted}',
    'Retry; the projectors are behind.',
  ),
  point_not_kept: entry(
    404,
    false,
    'Nothing is kept of that point in time',
    'Ask for a later one; TASKLEDGER_AUDIT_DAYS says how long the audit is kept.',
  ),
  point_too_far: entry(
    422,
    false,
    '{events} events have happened since; counters are taken back by {limit} at most',
    'Build the read models as of that point: taskledger projection rebuild --until POINT --into SCHEMA.',
  ),
  projection_unknown: entry(
    404,
    false,
    'There is no read model {projection}',
    'See GET /v1/projections for those that there are.',
  ),
  projection_ahead_of_log: entry(
    500,
    false,
    'Read model {projection} reflects sequence {position} of a log created {expected}, but the log now ends at {lastSeq} and was created {actual}: it was lost or replaced',
    'Restore the log; or, to accept the one that is there, rebuild the read model (taskledger projection rebuild).',
  ),
  projection_job_not_found: entry(
    404,
    false,
    'There is no projection job {jobId}',
    'See GET /v1/projections.',
  ),
  projection_job_active: entry(
    409,
    false,
    'Job {jobId} is {state} on schema {schema}',
    'Wait for it; or stop it, and resume or discard it.',
  ),
  projection_job_ended: entry(
    409,
    false,
    'Job {jobId} is {state}: it cannot be {wish}',
    'Stop a waiting or running job; resume or discard a stopped one.',
  ),
  history_incomplete: entry(
    409,
    false,
    'The streams hold events from sequence {firstSeq} on only: what rows say of earlier ones would be lost',
    'Verify, build into a schema of its own, or accept the loss (acceptLoss, --accept-loss).',
  ),
  schema_in_use: entry(
    409,
    false,
    'Schema {schema} exists already and was not made by this job',
    'Choose another name, or drop the schema.',
  ),
  log_replaced: entry(
    500,
    false,
    'Schema {schema} was begun from another log than the one that is there now',
    'Discard the job and start it again.',
  ),
} satisfies Record<string, ErrorEntry>;
