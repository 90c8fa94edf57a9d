import { randomUUID } from 'node:crypto';
import type { Command, CommandOf } from '../domain/commands.ts';
import type { Actor, EventOf, Recorded, Scheduled } from '../domain/events.ts';
import { isName } from '../domain/names.ts';
import type { EventLog } from '../log/event-log.ts';
import { execute } from '../log/handle.ts';
import { beginSubmit, endSubmit } from '../observe/trace.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config.ts';
import type { Cells } from '../registry/cells.ts';
import type { TypeSettings } from '../registry/type-settings.ts';
import type { Backlog } from './backlog.ts';
import { Debouncer, type Place } from './debounce.ts';
import { fingerprintOf } from './identity.ts';
import { type Issue, issue, type Reason } from './issue.ts';
import { accepted, outcomeOf, refused, refusedBy, type SubmitOutcome } from './outcome.ts';
import type { OverRate, SubmissionRates } from './rates/submission-rates.ts';
import { parseSubmission, type Submission } from './submission.ts';
import { submitThrottled } from './throttle.ts';

export interface IntakeContext {
  readonly actor: Actor;
  /** W3C traceparent; anything else is dropped. */
  readonly trace?: string | undefined;
  /** A key that came beside the input. */
  readonly idempotencyKey?: string | undefined;
  /** The id of a task without a key; a new UUIDv7 when absent. */
  readonly fallbackId?: string;
  /** Accepts although the type is full or the tenant over its rate: for what has been stored already. */
  readonly ignoreBacklog?: boolean;
  /** When it was stored, by the servers' clock: of a submission that may have waited, and may come a second time. */
  readonly sentAt?: number;
  /** The schedule that the task comes from. */
  readonly schedule?: Scheduled;
}

export interface Intake {
  /** Validates and stores INGESTED. Expected failures are values; a defect throws. */
  submit(tenant: string, input: unknown, context: IntakeContext): Promise<SubmitOutcome>;
  /** Submits each on its own, all at once; the outcomes stand in the order of the inputs. */
  submitBatch(tenant: string, inputs: readonly unknown[], context: IntakeContext): Promise<SubmitOutcome[]>;
  /** Stores REJECTED as the only event of a task, or answers the sequence of the first event when there is one already. */
  reject(rejection: Rejection): Promise<{ readonly seq: number; readonly existed: boolean }>;
  /** The first event of a task, undefined when the hot window knows nothing of it. */
  beginning(tenant: string, taskId: string): Promise<Recorded | undefined>;
}

export interface Rejection {
  readonly tenant: string;
  readonly type: string;
  readonly taskId: string;
  readonly reasons: readonly Reason[];
  readonly actor: Actor;
  readonly trace?: string | undefined;
}

export interface IntakeOptions {
  readonly log: EventLog;
  readonly types: { get(type: string): TypeSettings | undefined };
  readonly config: Pick<Config, 'maxPayloadBytes' | 'maxPayloadDepth' | 'hotWindowHours'>;
  readonly clock: Clock;
  readonly backlog: Pick<Backlog, 'full'> & Partial<Pick<Backlog, 'fullTenant' | 'fullDelayed'>>;
  /** No bounds when absent. */
  readonly rates?: Pick<SubmissionRates, 'take'>;
  /** What throttle and debounce go by: the servers' time, and where the chains of debounce keys have come to. */
  readonly windows: { readonly clock: Clock; readonly places: Cells<Place> };
  /** Answers `log_unavailable` when the log has not confirmed within this time; no bound but the log's own when absent. */
  readonly confirmWithinMs?: number;
  /** What keeps the log from storing, to be told to who waited in vain. */
  readonly unstored?: () => string | undefined;
  /** Told of every outcome: `accepted`, `replayed` or the error's code, and how long it took. */
  readonly observe?: (outcome: string, ms: number) => void;
}

const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

export function createIntake(options: IntakeOptions): Intake {
  const { log, types, config, clock, backlog, rates, windows, observe, confirmWithinMs, unstored } = options;
  const debouncer = new Debouncer({ log, places: windows.places });
  const longestWindowMs = config.hotWindowHours * 3_600_000;
  const limits = { maxBytes: config.maxPayloadBytes, maxDepth: config.maxPayloadDepth };
  const settingsOf = (type: string) => types.get(type);

  async function submit(tenant: string, input: unknown, context: IntakeContext): Promise<SubmitOutcome> {
    const parsed = parseSubmission(input, {
      tenant,
      key: context.idempotencyKey,
      limits,
      longestWindowMs,
      // A message may have waited for long: its delay counts from when it was sent.
      now: context.sentAt ?? clock.now(),
      settingsOf,
      ...(context.fallbackId === undefined ? {} : { fallbackId: context.fallbackId }),
    });
    if (!parsed.ok) return refused(parsed.issues);
    const { submission } = parsed;
    const throttled =
      delayedOver(submission) ??
      (context.ignoreBacklog === true ? undefined : await throttle(tenant, submission.type));
    if (throttled !== undefined) return refused([throttled]);
    const stored = save(submission, context);
    return confirmWithinMs === undefined ? stored : within(confirmWithinMs, stored, unstored);
  }

  function save(submission: Submission, context: IntakeContext): Promise<SubmitOutcome> {
    const { window } = submission;
    const command = ingest(submission, clock.now(), context);
    if (window === undefined) return store(log, submission, command);
    const now = context.sentAt ?? windows.clock.now();
    return window.kind === 'throttle'
      ? submitThrottled(log, command, { ...window, now })
      : debouncer.submit({ command, window, submittedAt: now, once: context.sentAt !== undefined });
  }

  /** What comes by message as well: it waits in its stream instead of in the dispatcher's memory. */
  function delayedOver({ type, runAt, window }: Submission): Issue | undefined {
    const waits = window?.kind === 'debounce' || (runAt !== undefined && runAt > clock.now());
    const full = waits ? backlog.fullDelayed?.(type) : undefined;
    return full && issue('delayed_full', { ...full });
  }

  /** The rates last: a token is not spent on what is refused anyhow. */
  async function throttle(tenant: string, type: string): Promise<Issue | undefined> {
    const full = backlog.full(type);
    if (full !== undefined) return issue('backlog_full', { ...full });
    const fullTenant = backlog.fullTenant?.(tenant);
    if (fullTenant !== undefined) return issue('tenant_backlog_full', { ...fullTenant });
    const over = await rates?.take(tenant, type);
    return over === undefined ? undefined : overRateIssue(over);
  }

  async function traced(tenant: string, input: unknown, context: IntakeContext): Promise<SubmitOutcome> {
    const span = beginSubmit({ tenant, type: typeIn(input), parent: validTrace(context.trace) });
    try {
      const outcome = await submit(tenant, input, { ...context, trace: span.trace });
      endSubmit(span, outcome);
      return outcome;
    } catch (error) {
      endSubmit(span, { ok: false, error: error as Error });
      throw error;
    }
  }

  async function observed(tenant: string, input: unknown, context: IntakeContext): Promise<SubmitOutcome> {
    if (observe === undefined) return traced(tenant, input, context);
    const startedAt = performance.now();
    const outcome = await traced(tenant, input, context);
    observe(outcome.ok ? becameOf(outcome) : outcome.error.code, performance.now() - startedAt);
    return outcome;
  }

  return {
    submit: observed,
    submitBatch: (tenant, inputs, context) =>
      Promise.all(inputs.map((input) => observed(tenant, input, context))),
    reject: (rejection) => storeRejection(log, rejection, clock.now()),
    beginning: async (tenant, taskId) => (await log.readTask(tenant, taskId))[0],
  };
}

/** In one word, for the metrics. */
export const becameOf = ({ replayed, deduplicated }: SubmitOutcome & { readonly ok: true }): string =>
  deduplicated !== undefined ? 'deduplicated' : replayed ? 'replayed' : 'accepted';

function ingest(
  { window: _window, ...submission }: Submission,
  at: number,
  { actor, trace, schedule }: IntakeContext,
): CommandOf<'ingest'> {
  return {
    kind: 'ingest',
    eventId: randomUUID(),
    at,
    actor,
    trace: validTrace(trace),
    ...submission,
    schedule,
  };
}

function store(log: EventLog, submission: Submission, command: Command): Promise<SubmitOutcome> {
  const { tenant, taskId } = submission;
  return outcomeOf(async () => {
    const result = await execute(log, { tenant, taskId, known: 'none' }, () => command);
    if (result.ok) return accepted(taskId, result.value.seq);
    return result.error.code === 'task_exists' ? repeat(log, submission) : refusedBy(result.error);
  });
}

/** The work goes on after its time; only its submitter is told not to wait. */
function within(
  ms: number,
  work: Promise<SubmitOutcome>,
  why: () => string | undefined = () => undefined,
): Promise<SubmitOutcome> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const reason = why() ?? `nothing heard within ${ms} ms`;
      resolve(refused([issue('log_unavailable', { reason })]));
    }, ms);
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** The task exists: the same submission gets its original back, any other is a conflict. */
async function repeat(log: EventLog, submission: Submission): Promise<SubmitOutcome> {
  const { tenant, taskId, type, payload } = submission;
  const events = await log.readTask(tenant, taskId);
  const [first] = events;
  if (first === undefined) return refused([issue('append_conflict', { taskId })]);
  const original = await fingerprintOfOriginal(log, submission, first);
  return original === (submission.fingerprint ?? fingerprintOf(type, payload))
    ? { ok: true, id: taskId, status: 'INGESTED', seq: first.seq, replayed: true }
    : refused([issue('idempotency_conflict', { taskId })]);
}

/** Undefined when the task was REJECTED: its submission never was valid, so nothing valid can be a repeat of it. */
async function fingerprintOfOriginal(log: EventLog, { tenant, taskId, type }: Submission, first: Recorded) {
  const { event } = first;
  if (event.kind === 'REJECTED') return undefined;
  if (event.kind === 'INGESTED')
    return event.data.fingerprint ?? fingerprintOf(event.type, event.data.payload);
  // The beginning has aged out; the carried state still knows.
  const state = await log.readState(tenant, taskId, first.seq);
  if (state === undefined) return undefined;
  return state.fingerprint ?? (state.payload === undefined ? undefined : fingerprintOf(type, state.payload));
}

async function storeRejection(log: EventLog, rejection: Rejection, at: number) {
  const { tenant, type, taskId, reasons, actor, trace } = rejection;
  const result = await execute(log, { tenant, taskId, known: 'none' }, () => ({
    kind: 'reject',
    eventId: randomUUID(),
    at,
    actor,
    trace: validTrace(trace),
    tenant,
    type,
    taskId,
    reasons: reasons as EventOf<'REJECTED'>['data']['reasons'],
  }));
  if (result.ok) return { seq: result.value.seq, existed: false };
  if (result.error.code !== 'task_exists') throw result.error;
  const [first] = await log.readTask(tenant, taskId);
  return { seq: first?.seq ?? 0, existed: true };
}

const overRateIssue = ({ tenant, type, ratePerSecond, burst, retryAfterMs }: OverRate): Issue =>
  issue('submission_rate_limited', {
    scope: type === undefined ? `Tenant ${tenant}` : `Tenant ${tenant} of type ${type}`,
    tenant,
    ...(type === undefined ? {} : { type }),
    limit: ratePerSecond,
    burst,
    retryAfterMs,
  });

/** For the name of a span, before the input has been looked at. */
function typeIn(input: unknown): string {
  const type: unknown =
    typeof input === 'object' && input !== null && 'type' in input ? input.type : undefined;
  return typeof type === 'string' && isName(type) ? type : 'unknown';
}

const validTrace = (trace: string | undefined): string | undefined =>
  trace !== undefined && TRACEPARENT.test(trace) ? trace : undefined;
