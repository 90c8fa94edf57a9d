import { type ErrorEntry, entry } from './entry.ts';

/** Configuration, the servers it names, and a process that cannot go on. */
export const serverErrors = {
  config_invalid: entry(
    500,
    false,
    'Configuration {key} is invalid: {reason}',
    'Correct the environment variable; the README lists them all.',
  ),
  shutting_down: entry(503, true, 'This instance is shutting down', 'Retry; another instance will answer.'),
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
  internal: entry(
    500,
    true,
    'Something unexpected happened',
    'Retry; if it persists, report the request id.',
  ),
} satisfies Record<string, ErrorEntry>;
