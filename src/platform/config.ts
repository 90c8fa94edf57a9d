import { z } from 'zod';
import { TaskledgerError } from '../domain/errors.ts';

/**
 * The only reader of the environment. Every setting is listed in `settings`, with its variable, default and meaning;
 * the README's table is tested against this list.
 */
interface Setting<T> {
  readonly env: string;
  readonly schema: z.ZodType<T>;
  readonly fallback: T;
  readonly doc: string;
}

const setting = <T>(env: string, schema: z.ZodType<T>, fallback: T, doc: string): Setting<T> => ({
  env,
  schema,
  fallback,
  doc,
});
const text = z.string().min(1);
const count = z.coerce.number().int().min(0);
const atLeast = (least: number) => z.coerce.number().int().min(least);
const port = z.coerce.number().int().min(0).max(65_535);
const optionalText = z.string().min(1).optional();

export const settings = {
  natsUrl: setting('NATS_URL', text, 'nats://127.0.0.1:4222', 'NATS servers, comma separated'),
  natsCreds: setting('NATS_CREDS', optionalText, undefined, 'Path of a credentials file'),
  natsUser: setting('NATS_USER', optionalText, undefined, 'User name, with NATS_PASSWORD'),
  natsPassword: setting('NATS_PASSWORD', optionalText, undefined, 'Password of NATS_USER'),
  databaseUrl: setting(
    'DATABASE_URL',
    text,
    'postgres://postgres@127.0.0.1:5432/taskledger',
    'Postgres of the read models',
  ),
  databasePoolSize: setting('DATABASE_POOL_SIZE', atLeast(1), 10, 'Connections a process keeps for queries'),
  databaseTimeoutMs: setting(
    'DATABASE_TIMEOUT_MS',
    atLeast(100),
    10_000,
    'Longest time a query may take before it is given up',
  ),
  databaseConnectTimeoutMs: setting(
    'DATABASE_CONNECT_TIMEOUT_MS',
    atLeast(100),
    5_000,
    'Longest wait for a connection to Postgres, a new one or a free one of those that are kept',
  ),
  databaseLookEveryMs: setting(
    'DATABASE_LOOK_MS',
    atLeast(50),
    1_000,
    'While Postgres does not answer, queries are refused at once; so often it is asked whether it is back',
  ),

  prefix: setting(
    'TASKLEDGER_PREFIX',
    z.string().regex(/^([a-z0-9]+_)?$/),
    '',
    'Put before every stream, bucket and subject, such as `staging_`; lets several installations share one account',
  ),
  replicas: setting(
    'TASKLEDGER_REPLICAS',
    z.coerce.number().int().min(1).max(5),
    1,
    'Copies of every stream: 1 for development, 3 for production',
  ),
  hotWindowHours: setting(
    'TASKLEDGER_HOT_WINDOW_HOURS',
    z.coerce.number().min(0.01),
    24,
    'How long TASKS keeps an event; also the idempotency window',
  ),
  historyDays: setting('TASKLEDGER_HISTORY_DAYS', atLeast(1), 365, 'How long HISTORY keeps an event'),
  historyBytes: setting(
    'TASKLEDGER_HISTORY_BYTES',
    z.coerce.number().int().min(-1),
    -1,
    'Size limit of HISTORY; -1 for none',
  ),

  appendInFlight: setting(
    'TASKLEDGER_APPEND_IN_FLIGHT',
    atLeast(1),
    1_024,
    'Appends a process may have waiting for their answer',
  ),
  appendTimeoutMs: setting(
    'TASKLEDGER_APPEND_TIMEOUT_MS',
    atLeast(100),
    5_000,
    'Wait for the answer to one append before it is retried',
  ),
  appendRetries: setting(
    'TASKLEDGER_APPEND_RETRIES',
    count,
    8,
    'Retries of an append whose outcome is unknown, before the caller gets `log_unavailable`',
  ),

  httpHost: setting('TASKLEDGER_HTTP_HOST', text, '127.0.0.1', 'Address the API listens on'),
  httpPort: setting('TASKLEDGER_HTTP_PORT', port, 8_080, 'Port the API listens on; 0 for any free one'),
  healthPort: setting(
    'TASKLEDGER_HEALTH_PORT',
    port.optional(),
    undefined,
    'Port on which any process, workers too, serves health and metrics without a key; not set, none; 0 for any free one',
  ),
  httpSubmitTimeoutMs: setting(
    'TASKLEDGER_HTTP_SUBMIT_TIMEOUT_MS',
    atLeast(100),
    10_000,
    'Wait of an HTTP submission for the log, before it is answered 503; the write may still happen, and the same key tells',
  ),
  ratesAnswerMs: setting(
    'TASKLEDGER_RATES_ANSWER_MS',
    atLeast(10),
    500,
    'Wait of a submission for what all processes have used of its rate; one that is not told keeps the rate alone',
  ),
  httpRatePerSecond: setting(
    'TASKLEDGER_HTTP_RATE',
    atLeast(1),
    5_000,
    'Requests a second one API key may make to one API process',
  ),
  httpFeeds: setting('TASKLEDGER_HTTP_FEEDS', atLeast(1), 500, 'Clients of the live feed of one API process'),
  httpFeedBufferBytes: setting(
    'TASKLEDGER_HTTP_FEED_BUFFER_BYTES',
    atLeast(1_024),
    4_194_304,
    'Bytes that may wait for one client of the live feed; one that takes too little is dropped, and may come back with its Last-Event-ID',
  ),

  operatorKey: setting(
    'TASKLEDGER_OPERATOR_KEY',
    optionalText,
    undefined,
    "An operator's API key, `tl_<16 hex>_<43 base64url>`, stored (hashed) when the API starts unless it is there: the first key of an installation",
  ),
  operatorKeyFile: setting(
    'TASKLEDGER_OPERATOR_KEY_FILE',
    optionalText,
    undefined,
    'Path of a file with that key instead, such as a mounted secret',
  ),

  maxPayloadBytes: setting(
    'TASKLEDGER_MAX_PAYLOAD_BYTES',
    atLeast(1),
    524_288,
    'Largest payload, as UTF-8 JSON',
  ),
  maxPayloadDepth: setting(
    'TASKLEDGER_MAX_PAYLOAD_DEPTH',
    z.coerce.number().int().min(1).max(512),
    64,
    'Deepest nesting of a payload; at most 512',
  ),
  maxBatchTasks: setting('TASKLEDGER_MAX_BATCH', atLeast(1), 1_000, 'Tasks in one batch request'),
  maxBacklog: setting(
    'TASKLEDGER_MAX_BACKLOG',
    atLeast(1),
    100_000,
    'Waiting tasks of a type above which submission answers 429, until 80 % of it',
  ),
  maxDelayed: setting(
    'TASKLEDGER_MAX_DELAYED',
    atLeast(1),
    1_000_000,
    'Tasks of a type that wait for a time above which delayed submissions answer 429, until 80 % of it',
  ),
  maxParked: setting(
    'TASKLEDGER_MAX_PARKED',
    atLeast(4_096),
    32_768,
    'Messages of tenants with a full backlog that may wait in SUBMISSIONS to come again, over all API processes, before the tenants that have most of them are refused; what the processes work on, up to 512 messages each, is counted with them',
  ),
  inlinePayloadBytes: setting(
    'TASKLEDGER_INLINE_PAYLOAD_BYTES',
    count,
    8_192,
    'Payloads up to this size ride in the QUEUED event; larger ones are read by the worker',
  ),

  dispatchGroup: setting(
    'TASKLEDGER_DISPATCH_GROUP',
    z.string().regex(/^[a-z0-9_-]+$/),
    'default',
    'The group of types that this dispatcher leads',
  ),
  leaderLeaseMs: setting(
    'TASKLEDGER_LEADER_LEASE_MS',
    atLeast(500),
    5_000,
    'A standby takes over when the leader has not renewed for this long',
  ),
  takeoverHoldMs: setting(
    'TASKLEDGER_TAKEOVER_HOLD_MS',
    atLeast(0),
    10_000,
    'After a leader that did not hand over, tasks with a limit of concurrency wait so long: what it had sent may arrive as late as that',
  ),
  readyWindowMin: setting(
    'TASKLEDGER_READY_WINDOW_MIN',
    atLeast(1),
    64,
    'Least number of QUEUED, unclaimed tasks a type may have',
  ),
  readyWindowMax: setting('TASKLEDGER_READY_WINDOW_MAX', atLeast(1), 4_096, 'Most of them'),
  readyWindowMs: setting(
    'TASKLEDGER_READY_WINDOW_MS',
    atLeast(1),
    500,
    'In between: what the workers claim in this time',
  ),
  payloadCacheBytes: setting(
    'TASKLEDGER_PAYLOAD_CACHE_BYTES',
    count,
    134_217_728,
    'Payload bytes of waiting tasks that the dispatcher keeps in memory; others are read again when their turn comes',
  ),

  snapshotEveryMs: setting(
    'TASKLEDGER_SNAPSHOT_MS',
    atLeast(100),
    30_000,
    'How often a standby dispatcher writes a snapshot of its memory, so that a new one need not read the whole log; the leader does, half as often, when no standby does',
  ),
  snapshotMinEvents: setting(
    'TASKLEDGER_SNAPSHOT_EVENTS',
    atLeast(1),
    10_000,
    'Least number of events between two snapshots',
  ),

  ackWaitMs: setting(
    'TASKLEDGER_ACK_WAIT_MS',
    atLeast(1_000),
    30_000,
    'A lease that is not renewed for this long is lost',
  ),
  workerVersion: setting(
    'TASKLEDGER_WORKER_VERSION',
    z.string().min(1).max(100).optional(),
    undefined,
    'Release of the code that a worker runs: its failures and dead letters say so, and can be found by it',
  ),
  spoolDir: setting(
    'TASKLEDGER_SPOOL_DIR',
    optionalText,
    undefined,
    'Directory where workers keep outcomes while the log does not answer; without one they are lost when the process ends',
  ),
  projectorBatchEvents: setting(
    'TASKLEDGER_PROJECTOR_BATCH',
    atLeast(1),
    4_000,
    'Most events in one transaction of a projector',
  ),
  projectorBatchMs: setting(
    'TASKLEDGER_PROJECTOR_BATCH_MS',
    atLeast(1),
    50,
    'How long a projector gathers events for one transaction',
  ),
  projectorTimeoutMs: setting(
    'TASKLEDGER_PROJECTOR_TIMEOUT_MS',
    atLeast(1_000),
    60_000,
    'Longest time one statement of a projector may take; then it is tried again',
  ),
  auditDays: setting(
    'TASKLEDGER_AUDIT_DAYS',
    atLeast(1),
    90,
    'Daily partitions of the audit table that are kept',
  ),

  reconcileEveryMs: setting(
    'TASKLEDGER_RECONCILE_MS',
    atLeast(50),
    5_000,
    'How often the leading dispatcher looks for work items and attempts that nobody drives any more',
  ),

  startTimeoutMs: setting(
    'TASKLEDGER_START_TIMEOUT_MS',
    count,
    60_000,
    'How long a process or worker that starts waits for NATS and its JetStream, over all steps of its start together, before it gives up with `nats_unreachable` or `log_unavailable`; reading the log is no waiting, and Postgres is waited for as long as it takes',
  ),
  shutdownGraceMs: setting(
    'TASKLEDGER_SHUTDOWN_GRACE_MS',
    atLeast(100),
    25_000,
    'How long a process may take to stop after SIGTERM or Ctrl+C before it ends with exit code 1; a second signal ends it at once',
  ),
  retentionCheckMs: setting(
    'TASKLEDGER_RETENTION_CHECK_MS',
    atLeast(50),
    30_000,
    'How often HISTORY is compared with TASKS, and the limits of both with what is still needed',
  ),
  retentionGuard: setting(
    'TASKLEDGER_RETENTION_GUARD',
    z.enum(['refuse', 'warn']),
    'refuse',
    'A shorter limit of TASKS or HISTORY that takes what an unfinished task or a read model needs stops the start (refuse), or is only told of (warn)',
  ),

  logLevel: setting(
    'TASKLEDGER_LOG_LEVEL',
    z.enum(['trace', 'debug', 'info', 'warn', 'error', 'silent']),
    'info',
    'Least severe log line that is written',
  ),
} as const;

type SettingKey = keyof typeof settings;
export type Config = {
  readonly [K in SettingKey]: (typeof settings)[K] extends Setting<infer T> ? T : never;
};

/** Parses the environment, once, at the edge. Throws `config_invalid` naming the variable. */
export function loadConfig(env: Readonly<Record<string, string | undefined>> = process.env): Config {
  const entries = Object.entries(settings).map(([key, { env: name, schema, fallback }]) => {
    const raw = env[name];
    if (raw === undefined || raw === '') return [key, fallback];
    const parsed = (schema as z.ZodType<unknown>).safeParse(raw);
    if (parsed.success) return [key, parsed.data];
    const reason = parsed.error.issues.map((issue) => issue.message).join('; ');
    throw new TaskledgerError('config_invalid', {
      key: name,
      reason: `${reason} (got ${JSON.stringify(raw)})`,
    });
  });
  return Object.freeze(Object.fromEntries(entries)) as Config;
}

/** What a client of the HTTP API needs, in the same variables as the command line's. */
export function loadClientConfig(env: Readonly<Record<string, string | undefined>> = process.env): {
  readonly url: string;
  readonly key: string;
} {
  const { TASKLEDGER_URL: url = 'http://127.0.0.1:8080', TASKLEDGER_KEY: key = '' } = env;
  return { url, key };
}
