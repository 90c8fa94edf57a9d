/**
 * The error catalogue: every error a user can meet, in one place.
 * A code is stable for ever; `{slots}` in message and fix are filled from `details`.
 */
export interface ErrorEntry {
  /** HTTP status an API answers with. */
  readonly status: number;
  /** Whether the same request may succeed later, unchanged. */
  readonly retryable: boolean;
  /** What is wrong, in one sentence. */
  readonly message: string;
  /** What to do next. */
  readonly fix: string;
}

const entry = (status: number, retryable: boolean, message: string, fix: string): ErrorEntry => ({
  status,
  retryable,
  message,
  fix,
});

export const catalogue = {
  // Requests
  request_invalid: entry(400, false, '{reason}', 'Correct the field and send the request again.'),
  name_invalid: entry(
    400,
    false,
    '{field} {value} is not a valid name',
    'Use 1 to 63 of a-z, 0-9, "_" and "-", starting with a letter or a digit.',
  ),
  payload_not_json: entry(
    400,
    false,
    'The body is not valid JSON: {reason}',
    'Send one JSON document encoded as UTF-8.',
  ),
  payload_too_large: entry(
    413,
    false,
    '{field} has {bytes} bytes; the limit is {limit}',
    'Store the content elsewhere and submit a reference, or raise intake.maxPayloadBytes.',
  ),
  payload_too_deep: entry(400, false, '{field} is nested deeper than {limit} levels', 'Flatten the payload.'),
  payload_has_nul: entry(
    400,
    false,
    '{field} contains a NUL character (\\u0000), which Postgres cannot store',
    'Remove the NUL character, or encode binary content as base64.',
  ),
  payload_has_invalid_unicode: entry(
    400,
    false,
    '{field} contains half of a surrogate pair, which is no Unicode text and which Postgres cannot store',
    'Send well-formed Unicode, or encode binary content as base64.',
  ),
  payload_number_out_of_range: entry(
    400,
    false,
    '{field} is a number that does not fit into a double',
    'Send it as a string.',
  ),
  payload_key_forbidden: entry(
    400,
    false,
    '{field} is named "__proto__", which is unsafe for readers in JavaScript',
    'Use another key.',
  ),
  run_at_invalid: entry(
    400,
    false,
    '{field} {value} is not a time',
    'Use an ISO 8601 instant with a zone such as 2026-01-31T09:30:00Z, or milliseconds since 1970.',
  ),
  batch_too_large: entry(
    400,
    false,
    'The batch has {count} tasks; the limit is {limit}',
    'Send smaller batches.',
  ),
  unsupported_media_type: entry(
    415,
    false,
    'Content type {value} is not supported',
    'Send application/json.',
  ),
  route_not_found: entry(404, false, 'No route {method} {path}', 'See /docs for the routes.'),
  method_not_allowed: entry(405, false, '{method} is not allowed on {path}', 'See /docs for the routes.'),

  // Who may
  key_missing: entry(401, false, 'No API key was sent', 'Send "Authorization: Bearer <key>".'),
  key_invalid: entry(
    401,
    false,
    'The API key is not known or was revoked',
    'Check the key, or create one with "taskledger key create".',
  ),
  scope_missing: entry(403, false, 'The API key lacks the scope "{scope}"', 'Use a key with this scope.'),
  tenant_forbidden: entry(
    403,
    false,
    'The API key does not belong to tenant {tenant}',
    'Use a key of that tenant.',
  ),
  key_not_found: entry(404, false, 'API key {keyId} is not known', 'List the keys with GET /v1/keys.'),
  tenant_unknown: entry(
    404,
    false,
    'Tenant {tenant} does not exist',
    'Create it with "taskledger tenant create".',
  ),

  // Schedules
  schedule_invalid: entry(
    400,
    false,
    'The schedule cannot be: {reason}',
    'Correct the field; POST /v1/schedules/preview tries an expression out.',
  ),
  schedule_not_found: entry(
    404,
    false,
    'Tenant {tenant} has no schedule {name}',
    'List the schedules with GET /v1/schedules.',
  ),

  // Submission
  idempotency_conflict: entry(
    409,
    false,
    'Task {taskId} exists with another payload or type',
    'Use a new idempotency key for a different task.',
  ),
  backlog_full: entry(
    429,
    true,
    'Type {type} has {waiting} tasks waiting; the limit is {limit}',
    'Retry after the time in Retry-After.',
  ),
  delayed_full: entry(
    429,
    true,
    'Type {type} has {waiting} tasks that wait for a time; the limit is {limit}',
    'Submit it without runAt or delayMs, or retry after the time in Retry-After.',
  ),
  tenant_backlog_full: entry(
    429,
    true,
    'Tenant {tenant} has {waiting} tasks waiting; its limit is {limit}',
    'Retry after the time in Retry-After.',
  ),
  submission_rate_limited: entry(
    429,
    true,
    '{scope} may submit {limit} tasks a second, and {burst} at once after a calm time: that is used up',
    'Send again after {retryAfterMs} ms and spread the tasks, or have the rate raised: "taskledger tenant set", "taskledger type set".',
  ),
  rate_limited: entry(429, true, 'Too many requests', 'Retry after the time in Retry-After.'),
  log_unavailable: entry(
    503,
    true,
    'The event log did not confirm the write: {reason}',
    'Retry with the same idempotency key: a write that did happen is recognised.',
  ),
  shutting_down: entry(503, true, 'This instance is shutting down', 'Retry; another instance will answer.'),

  // Reads
  task_not_found: entry(
    404,
    false,
    'Task {taskId} is not known',
    'Check the id and the tenant; a task submitted a moment ago is visible with ?wait=<seq>.',
  ),
  dead_letter_not_found: entry(
    404,
    false,
    'Task {taskId} is not known to have died',
    'Check the id and the tenant; GET /v1/dead-letters lists those that have.',
  ),
  cursor_invalid: entry(
    400,
    false,
    'The cursor is not one that this API issued',
    'Start again without a cursor.',
  ),
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

  // Bulk operations
  operation_not_found: entry(
    404,
    false,
    'Operation {operationId} is not known',
    'Check the id and the tenant; operations are kept for 90 days.',
  ),
  operation_ended: entry(
    409,
    false,
    'Operation {operationId} is {state}, which is final',
    'Start a new one for what is left.',
  ),

  // Transitions (values returned by decide)
  task_exists: entry(
    409,
    false,
    'Task {taskId} already exists',
    'This is a repeat of an earlier submission.',
  ),
  task_missing: entry(404, false, 'Task {taskId} does not exist', 'Submit it first.'),
  task_terminal: entry(
    409,
    false,
    'Task {taskId} is {status}, which is final',
    'Only a dead-lettered or cancelled task can be replayed.',
  ),
  task_handed_out: entry(
    409,
    false,
    'Task {taskId} is {status}: it was already handed to the workers, so its place in line cannot change',
    'Let it run, or cancel it and submit it again.',
  ),
  debounce_superseded: entry(
    409,
    false,
    'A later submission of its debounce key has taken the place of this one in task {taskId}',
    'Nothing is left to do: the last submission of a key wins.',
  ),
  task_discarded: entry(
    409,
    false,
    'Task {taskId} was discarded',
    'A discarded dead letter stays where it is: submit the work as a new task.',
  ),
  transition_illegal: entry(
    409,
    false,
    '{command} is not possible while task {taskId} is {status}',
    'Read the task again and decide anew.',
  ),
  lease_lost: entry(
    409,
    false,
    'Attempt {attempt} of task {taskId} no longer belongs to {worker}',
    'Drop the outcome: another attempt has been or will be made.',
  ),
  retries_left: entry(409, false, 'Task {taskId} still has retries left', 'Let it retry, or cancel it.'),
  retries_exhausted: entry(
    409,
    false,
    'Task {taskId} has no retries left',
    'It belongs in the dead-letter queue.',
  ),
  cancel_pending: entry(
    409,
    false,
    'Cancellation of task {taskId} was already requested',
    'Wait for the worker to observe it.',
  ),
  payload_unknown: entry(
    409,
    false,
    'The payload of task {taskId} is not in the state at hand',
    'Read the event that holds it, and decide again with its payload in the state.',
  ),
  cancel_not_requested: entry(
    409,
    false,
    'Nobody asked to cancel task {taskId}',
    'Request the cancellation first.',
  ),

  // Servers and configuration
  config_invalid: entry(
    500,
    false,
    'Configuration {key} is invalid: {reason}',
    'Correct the environment variable; the README lists them all.',
  ),
  api_unreachable: entry(
    503,
    true,
    'No Taskledger answers at {url}: {reason}',
    'Start it with "npm start", or give its address with --url or TASKLEDGER_URL.',
  ),
  answer_unexpected: entry(
    502,
    false,
    '{url} answered {status} with {reason}',
    'Check that the address is that of a Taskledger API and not of a proxy in between.',
  ),
  nats_unreachable: entry(
    503,
    true,
    'NATS at {url} cannot be reached: {reason}',
    'Start it, or set NATS_URL.',
  ),
  nats_refused: entry(
    500,
    false,
    'NATS at {url} refuses the login: {reason}',
    'Check NATS_CREDS, or NATS_USER and NATS_PASSWORD.',
  ),
  nats_too_old: entry(
    500,
    false,
    'nats-server {version} is too old; {required} or newer is required',
    'Upgrade nats-server.',
  ),
  jetstream_missing: entry(
    500,
    false,
    'The NATS account has no JetStream',
    'Enable JetStream in the server configuration (jetstream: enabled).',
  ),
  stream_incompatible: entry(
    500,
    false,
    'Stream {stream} has {setting} = {actual}; {expected} is required',
    'Change the setting, or use another prefix (TASKLEDGER_PREFIX).',
  ),
  nats_server_unavailable: entry(
    500,
    false,
    'No usable nats-server was found. Tried: {tried}',
    'Set NATS_SERVER_BIN to a nats-server >= 2.14, or NATS_URL to a running one.',
  ),
  postgres_unavailable: entry(
    500,
    false,
    'No Postgres could be started: {reason}',
    'Set DATABASE_URL to a Postgres >= 14.',
  ),
  server_start_failed: entry(
    500,
    false,
    '{server} did not start: {reason}',
    'Read {logFile} for the whole story.',
  ),
  server_in_use: entry(
    500,
    false,
    '{dir} is used by {server} with pid {pid}, which process {ownerPid} owns',
    'Stop process {ownerPid} first, or use another data folder.',
  ),
  port_taken: entry(
    500,
    false,
    'Port {port} is taken, and {setting} asks for exactly this one',
    'Stop what listens on it, or choose another port.',
  ),
  migration_failed: entry(
    500,
    false,
    'Migration {name} failed: {reason}',
    'Correct the cause and start again; nothing of it was applied.',
  ),
  migration_changed: entry(
    500,
    false,
    'Migration {name} was changed after it had been applied',
    'Restore the file; add a new migration instead.',
  ),

  // Log
  log_refused: entry(
    500,
    false,
    'The event log refused a message on {subject}: {reason} ({code})',
    'Compare the settings of the stream with those that this version makes.',
  ),
  projection_ahead_of_log: entry(
    500,
    false,
    'Read model {projection} reflects sequence {position} of a log created {expected}, but the log now ends at {lastSeq} and was created {actual}: it was lost or replaced',
    'Restore the log; or, to accept the one that is there, rebuild the read model (taskledger projection rebuild).',
  ),
  projection_unknown: entry(
    404,
    false,
    'There is no read model {projection}',
    'See GET /v1/projections for those that there are.',
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
  retention_needed: entry(
    500,
    false,
    'The shorter {limit} would remove events of {stream} that are still needed, sequence {seq} first: {why}',
    'Keep the limit until the task has ended and the read models have caught up; or accept the loss (TASKLEDGER_RETENTION_GUARD=warn).',
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
  backup_folder_not_empty: entry(
    400,
    false,
    'The folder {dir} is not empty',
    'Give a new or an empty folder for every backup.',
  ),
  backup_empty: entry(
    404,
    false,
    'There are no streams with the prefix "{prefix}" to back up',
    'Check NATS_URL and TASKLEDGER_PREFIX.',
  ),
  backup_unreadable: entry(
    400,
    false,
    'The backup in {dir} cannot be restored: {reason}',
    'Give the folder of a backup that was completed, as it was written.',
  ),
  restore_not_empty: entry(
    409,
    false,
    'Stream {stream} exists: a backup is restored on servers without it',
    'Restore on empty servers, or delete the streams of this installation first.',
  ),
  transfer_failed: entry(
    503,
    true,
    'Stream {stream} could not be transferred: {reason}',
    'Try again; if it persists, see the log of nats-server.',
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
  append_conflict: entry(
    409,
    true,
    'Task {taskId} was moved by somebody else',
    'Read it again and decide anew.',
  ),
  event_unreadable: entry(
    500,
    false,
    'Event at sequence {seq} cannot be read: {reason}',
    'It is set aside; see the projector log.',
  ),
  snapshot_unreadable: entry(
    500,
    false,
    'A snapshot of the dispatcher cannot be used: {reason}',
    'Nothing is lost: the dispatcher takes the one before it, or reads the log instead.',
  ),
  internal: entry(
    500,
    true,
    'Something unexpected happened',
    'Retry; if it persists, report the request id.',
  ),
} as const satisfies Record<string, ErrorEntry>;

export type ErrorCode = keyof typeof catalogue;
export type ErrorDetails = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

const fill = (template: string, details: ErrorDetails): string =>
  template.replace(/\{(\w+)\}/g, (slot, name: string) => (name in details ? String(details[name]) : slot));

/** The one error class of the project. `field` names the input at fault, as a path such as `tasks[3].payload`. */
export class TaskledgerError extends Error {
  override readonly name = 'TaskledgerError';
  readonly code: ErrorCode;
  readonly details: ErrorDetails;
  readonly field: string | undefined;

  constructor(code: ErrorCode, details: ErrorDetails = {}, options: { cause?: unknown } = {}) {
    super(fill(catalogue[code].message, details), options);
    this.code = code;
    this.details = details;
    this.field = typeof details['field'] === 'string' ? details['field'] : undefined;
  }

  get status(): number {
    return catalogue[this.code].status;
  }

  get retryable(): boolean {
    return catalogue[this.code].retryable;
  }

  get fix(): string {
    return fill(catalogue[this.code].fix, this.details);
  }
}

/** A value that is either what was asked for or an error of the catalogue: expected failures are not thrown. */
export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: TaskledgerError };

export const ok = <T>(value: T): Result<T> => ({ ok: true, value });
export const err = (
  code: ErrorCode,
  details: ErrorDetails = {},
): { readonly ok: false; readonly error: TaskledgerError } => ({
  ok: false,
  error: new TaskledgerError(code, details),
});
