/**
 * Every metric there is. Names and labels are part of the product's interface. Labels are bounded: routes are patterns,
 * outcomes come from closed lists; no tenant, no id. README.md of this folder shows the table; `npm run docs` writes it.
 */
export interface Signal {
  readonly name: string;
  readonly kind: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  /** Which process tells it. */
  readonly role: 'api' | 'dispatcher' | 'projector' | 'worker';
  readonly meaning: string;
}

const signal = (
  role: Signal['role'],
  kind: Signal['kind'],
  name: string,
  labels: readonly string[],
  meaning: string,
): Signal => ({ name: `taskledger_${name}`, kind, labels, role, meaning });

export const signals = {
  httpRequests: signal(
    'api',
    'counter',
    'http_requests_total',
    ['method', 'route', 'status'],
    'HTTP requests answered',
  ),
  httpSeconds: signal(
    'api',
    'histogram',
    'http_request_duration_seconds',
    ['route'],
    'Time from a request to its answer',
  ),
  submissions: signal(
    'api',
    'counter',
    'submissions_total',
    ['via', 'outcome'],
    'Submitted tasks by outcome: accepted, replayed, deduplicated, or the code of the error',
  ),
  submissionSeconds: signal(
    'api',
    'histogram',
    'submission_append_seconds',
    [],
    'Time to validate an accepted task and have the log confirm it',
  ),

  unserved: signal(
    'api',
    'gauge',
    'tasks_without_workers',
    ['type', 'version'],
    'Waiting tasks of types and versions for which no worker is registered',
  ),

  dispatcherLeads: signal('dispatcher', 'gauge', 'dispatcher_leads', [], '1 while this dispatcher leads'),
  dispatcherPosition: signal(
    'dispatcher',
    'gauge',
    'dispatcher_position',
    [],
    'Sequence of the last event folded',
  ),
  dispatcherTasks: signal('dispatcher', 'gauge', 'dispatcher_live_tasks', [], 'Tasks in memory'),
  dispatcherLine: signal(
    'dispatcher',
    'gauge',
    'dispatcher_tasks',
    ['type', 'state'],
    'Tasks of a type: waiting, delayed, ready (QUEUED and unclaimed) or running',
  ),
  dispatcherClaims: signal(
    'dispatcher',
    'counter',
    'dispatcher_claims_total',
    ['type'],
    'Claims that this dispatcher has seen since it started, the replayed past included',
  ),
  dispatcherAppends: signal(
    'dispatcher',
    'counter',
    'dispatcher_appends_total',
    ['outcome'],
    'Decisions appended: queued, dead_lettered, cancelled, carried; conflict or failure when they were not',
  ),
  dispatcherReleased: signal(
    'dispatcher',
    'counter',
    'dispatcher_due_released_total',
    ['within'],
    'Tasks released whose time had come, each once under the smallest bound of ms that it was late; more: over all bounds',
  ),
  dispatcherAlarm: signal(
    'dispatcher',
    'counter',
    'dispatcher_alarm_total',
    ['outcome'],
    "The server's alarm for the next due time: set, failed (not stored), rung, or missed (it did not ring)",
  ),

  projectorLag: signal(
    'projector',
    'gauge',
    'projector_lag_events',
    [],
    'Events that the slowest read model is behind the log',
  ),
  projectorPosition: signal(
    'projector',
    'gauge',
    'projector_position',
    ['projection'],
    'Sequence that a read model reflects',
  ),
  projectorRate: signal(
    'projector',
    'gauge',
    'projector_events_per_second',
    [],
    'Events written, over the last seconds',
  ),
  projectorBatches: signal('projector', 'counter', 'projector_batches_total', [], 'Transactions committed'),
  projectorPoisoned: signal(
    'projector',
    'counter',
    'projector_poisoned_total',
    [],
    'Events set aside because they could not be applied',
  ),
  projectorOutage: signal('projector', 'gauge', 'projector_outage', [], '1 while Postgres cannot be written'),
  projectorStopped: signal(
    'projector',
    'gauge',
    'projector_stopped',
    [],
    'Read models that stand still because the log was lost or replaced',
  ),

  historyFindings: signal(
    'dispatcher',
    'gauge',
    'history_findings',
    [],
    'Places where HISTORY lacks events of TASKS or has them twice, not yet accepted by an operator',
  ),
  historyLag: signal(
    'dispatcher',
    'gauge',
    'history_lag_events',
    [],
    'Events of TASKS that HISTORY has not drawn yet, when it was looked at last',
  ),
  retentionDangers: signal(
    'dispatcher',
    'gauge',
    'retention_dangers',
    [],
    'Limits of the streams that are about to take what is still needed',
  ),

  workerRunning: signal('worker', 'gauge', 'worker_running', [], 'Attempts under way'),
  workerClaimed: signal('worker', 'counter', 'worker_claimed_total', [], 'Attempts begun'),
  workerAttempts: signal(
    'worker',
    'counter',
    'worker_attempts_total',
    ['outcome'],
    'Attempts ended: completed, failed, cancelled, released, lost or spooled',
  ),
  workerHandedBack: signal(
    'worker',
    'counter',
    'worker_handed_back_total',
    [],
    'Deliveries given back unclaimed',
  ),
  workerReclaimed: signal(
    'worker',
    'counter',
    'worker_reclaimed_total',
    [],
    'Attempts of other workers recorded as lost',
  ),
  workerInherited: signal(
    'worker',
    'counter',
    'worker_inherited_total',
    [],
    'Spooled outcomes of dead workers told',
  ),
  workerStray: signal(
    'worker',
    'counter',
    'worker_stray_rejections_total',
    [],
    'Rejections that nobody handled',
  ),
  workerDegraded: signal(
    'worker',
    'gauge',
    'worker_degraded',
    [],
    '1 while the worker takes no work because it cannot write its spool',
  ),
} as const;

export type SignalName = keyof typeof signals;

/** A figure at the moment it is asked for; a counter's is the total since the start. */
export interface Reading {
  readonly signal: SignalName;
  readonly labels?: Readonly<Record<string, string>>;
  readonly value: number;
}

/** The table of every metric, as Markdown. */
export function signalsTable(): string {
  const rows = Object.values(signals).map(
    ({ name, kind, labels, role, meaning }) =>
      `| \`${name}\` | ${kind} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${role} | ${meaning} |`,
  );
  return ['| metric | kind | labels | process | meaning |', '|---|---|---|---|---|', ...rows].join('\n');
}
