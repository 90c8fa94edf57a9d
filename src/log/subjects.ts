import { type EventKind, eventToken, FIRST_VERSION } from '../domain/events.ts';

/**
 * Every stream, bucket, consumer and subject name, and the fence's filter. Nothing else builds one.
 *
 * Tokens are tenants, types (names.ts), task ids (UUIDs) and event kinds only. `prefix` is '' or like `staging_`.
 */
export interface Names {
  readonly prefix: string;
  readonly streams: {
    readonly tasks: string;
    readonly history: string;
    readonly timers: string;
    readonly submissions: string;
  };
  readonly buckets: {
    readonly tenants: string;
    readonly types: string;
    readonly workers: string;
    readonly leaders: string;
    readonly keys: string;
    readonly controls: string;
    readonly schedules: string;
    /** How far each schedule has been fired. */
    readonly scheduleMarks: string;
    readonly operations: string;
    /** What is still needed of the streams, and what was found when they were checked. */
    readonly retention: string;
    /** What is left of the submission rates, one key a limit. */
    readonly rates: string;
    /** Where the chain of tasks of each debounce key has come to. */
    readonly debounces: string;
  };
  /** Object store of the dispatchers' snapshots. */
  readonly snapshots: string;
  /** `<group>.<slot>`: a group writes into its slots in turn, so that the snapshot before the last stays. */
  snapshot(group: string, slot: number): string;
  /** `tasks.<tenant>.<type>.<taskId>.<event>`; QUEUED of a version after the first goes to `queued_v<version>`. */
  taskEvent(tenant: string, type: string, taskId: string, kind: EventKind, version?: number): string;
  /**
   * The fence (rule 1): the one filter that every append to a task expects its last sequence on. On a replicated stream
   * two appends with different strings can both be accepted, so no other code may write this string.
   */
  fence(tenant: string, taskId: string): string;
  /** All events of the log. */
  readonly allTasks: string;
  /** Work items of a type and version: what the shared consumer of its workers filters on. */
  work(type: string, version?: number): string;
  /** `work_<type>`, and `work_<type>_V<version>` for versions after the first: types have no capitals. */
  workConsumer(type: string, version?: number): string;
  /** The live feed (core NATS, republished by the server after storing): `events.<tenant>.<type>.<taskId>.<event>`. */
  feed(tenant: string, type: string, taskId: string, event: string): string;
  /** `timers.<group>`: the schedule of the next due time of a dispatch group; fires as `tick.<group>`. */
  alarm(group: string): string;
  ring(group: string): string;
  /** What TIMERS stores: schedules and what they fire. */
  readonly timerSubjects: readonly string[];
  /** What streams of earlier releases store as well, although nothing is published there. */
  readonly formerSubjects: readonly string[];
  /** The whole live feed. */
  readonly allFeed: string;
  /** How HISTORY names the events that it takes from TASKS: `history.<tenant>.<type>.<event>`. */
  readonly historyTransform: { readonly src: string; readonly dest: string };
  submit(tenant: string, type: string): string;
  readonly allSubmissions: string;
  /** Core NATS subject on which a projector announces the position it has committed. */
  projectionPosition(projection: string): string;
  /** Core NATS subject on which the leading dispatcher announces what waits, several times a second: `BacklogNotice`. */
  readonly backlog: string;
  /** Core NATS subject on which the leading dispatcher of a group says why a task is not running. */
  explain(group: string): string;
  /** Core NATS subject on which it says where in the log the unclaimed work of a type begins. */
  workFrom(group: string): string;
}

/** A consumer of its own for every version, so that nobody is given what he does not know. */
const queuedToken = (version: number): string =>
  version === FIRST_VERSION ? eventToken('QUEUED') : `${eventToken('QUEUED')}_v${version}`;

export function names(prefix: string): Names {
  const p = prefix;
  return {
    prefix: p,
    streams: {
      tasks: `${p}TASKS`,
      history: `${p}HISTORY`,
      timers: `${p}TIMERS`,
      submissions: `${p}SUBMISSIONS`,
    },
    buckets: {
      tenants: `${p}tenants`,
      types: `${p}types`,
      workers: `${p}workers`,
      leaders: `${p}leaders`,
      keys: `${p}keys`,
      controls: `${p}controls`,
      schedules: `${p}schedules`,
      scheduleMarks: `${p}schedule_marks`,
      operations: `${p}operations`,
      retention: `${p}retention`,
      rates: `${p}rates`,
      debounces: `${p}debounces`,
    },
    snapshots: `${p}snapshots`,
    snapshot: (group, slot) => `${group}.${slot}`,
    taskEvent: (tenant, type, taskId, kind, version = FIRST_VERSION) =>
      `${p}tasks.${tenant}.${type}.${taskId}.${kind === 'QUEUED' ? queuedToken(version) : eventToken(kind)}`,
    fence: (tenant, taskId) => `${p}tasks.${tenant}.*.${taskId}.*`,
    allTasks: `${p}tasks.>`,
    work: (type, version = FIRST_VERSION) => `${p}tasks.*.${type}.*.${queuedToken(version)}`,
    workConsumer: (type, version = FIRST_VERSION) =>
      version === FIRST_VERSION ? `work_${type}` : `work_${type}_V${version}`,
    feed: (tenant, type, taskId, event) => `${p}events.${tenant}.${type}.${taskId}.${event}`,
    alarm: (group) => `${p}timers.${group}`,
    ring: (group) => `${p}tick.${group}`,
    timerSubjects: [`${p}timers.>`, `${p}tick.>`],
    formerSubjects: [`${p}due.>`, `${p}cron.>`],
    allFeed: `${p}events.>`,
    historyTransform: {
      src: `${p}tasks.*.*.*.*`,
      dest: `${p}history.{{wildcard(1)}}.{{wildcard(2)}}.{{wildcard(4)}}`,
    },
    submit: (tenant, type) => `${p}submit.${tenant}.${type}`,
    allSubmissions: `${p}submit.>`,
    backlog: `${p}dispatch.backlog`,
    explain: (group) => `${p}dispatch.explain.${group}`,
    workFrom: (group) => `${p}dispatch.work_from.${group}`,
    projectionPosition: (projection) => `${p}projections.${projection}.position`,
  };
}
