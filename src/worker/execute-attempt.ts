import { UnreadableEvent } from '../domain/codec.ts';
import { decide } from '../domain/decide.ts';
import type { EventOf, Recorded } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import { evolve, payloadIn, policyOf, type TaskState } from '../domain/task.ts';
import { execute } from '../log/handle.ts';
import { beginAttempt, endAttempt, type Traced, within } from '../observe/trace.ts';
import { Attempt } from './attempt.ts';
import { type Bench, commandMeta } from './bench.ts';
import { claim } from './claim.ts';
import { type Delivery, recordedOf, TERM } from './delivery.ts';
import type { Parsed } from './handler.ts';
import { monotonicMs } from './monotonic.ts';
import { notRetryable, type Outcome, outcomeOf } from './outcome.ts';
import { report } from './report.ts';
import { Context, runHandler, taskInfoOf } from './run-handler.ts';
import { settle } from './settle.ts';
import { describeThrown } from './task-error.ts';
import { taskKey } from './worker-entry.ts';

/** Node fires a timer at once when its delay does not fit in 31 bits. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * One delivery from its arrival to its ack:
 *
 *   receive -> know -> hold the lease -> claim -> load payload -> start -> validate -> run -> settle -> ack -> report
 *
 * The lease slot is held from the arrival to the end. Throws only what is a fault of this code or `log_unavailable`
 * before the attempt was claimed or started; the delivery then comes again by itself.
 */
export async function executeAttempt(bench: Bench, delivery: Delivery): Promise<void> {
  const queued = know(bench, delivery);
  if (queued === undefined) return;
  const leaseSlot = holdLease(bench, delivery, queued);
  try {
    const claimed = await claim(bench, delivery, queued);
    if (claimed === undefined) return;
    bench.counters.claimed += 1;
    await executeClaimed(bench, delivery, queued, { claimed, leaseSlot });
  } finally {
    bench.leases.release(leaseSlot);
  }
}

async function executeClaimed(
  bench: Bench,
  delivery: Delivery,
  queued: Recorded<EventOf<'QUEUED'>>,
  { claimed, leaseSlot }: { claimed: TaskState; leaseSlot: number },
): Promise<void> {
  const runnable = bench.runnables.get(delivery.type);
  if (runnable === undefined) throw new Error(`no handler for ${delivery.type}`);
  const { abortGraceMs } = bench;
  const traced = trace(bench, claimed, queued);
  const attempt = new Attempt({ delivery, queued, runnable, claimed, leaseSlot, abortGraceMs, traced });
  bench.active.set(attempt.key, attempt);
  let ended: Parameters<typeof endAttempt> = [traced, 'broken off'];
  try {
    const payload = await loadPayload(bench, attempt);
    const started = await start(bench, attempt);
    const startedAt = monotonicMs();
    const outcome: Outcome = started
      ? await run(bench, attempt, payload)
      : { status: 'lost', reason: 'superseded' };
    // Telling the outcome may take long: the lease is kept meanwhile, however long the handler had been allowed.
    bench.leases.setRenewUntil(leaseSlot, Number.POSITIVE_INFINITY);
    const settlement = await settle(bench, attempt, outcome, monotonicMs() - startedAt);
    report(bench, attempt, settlement);
    ended = [
      traced,
      settlement.outcome.status,
      settlement.outcome.status === 'failed' ? settlement.outcome.error : undefined,
    ];
  } finally {
    endAttempt(...ended);
    bench.active.delete(attempt.key);
    attempt.end();
  }
}

const trace = ({ actor }: Bench, claimed: TaskState, { event }: Recorded<EventOf<'QUEUED'>>): Traced =>
  beginAttempt({
    tenant: claimed.tenant,
    type: claimed.type,
    taskId: claimed.id,
    round: claimed.round,
    attempt: claimed.attempt,
    worker: actor.id,
    parent: event.trace,
  });

/** Reads the QUEUED event. One that cannot be read is never delivered again: no worker could do better. */
function know(bench: Bench, delivery: Delivery): Recorded<EventOf<'QUEUED'>> | undefined {
  try {
    const recorded = recordedOf(delivery);
    if (recorded.event.kind === 'QUEUED') return recorded as Recorded<EventOf<'QUEUED'>>;
    throw new UnreadableEvent(`a work item is a QUEUED event, not ${recorded.event.kind}`);
  } catch (error) {
    if (!(error instanceof UnreadableEvent)) throw error;
    bench.logger.error({ seq: delivery.seq, type: delivery.type, err: error }, 'work item cannot be read');
    bench.tell(delivery.ackSubject, TERM);
    return undefined;
  }
}

function holdLease(bench: Bench, delivery: Delivery, { event }: Recorded<EventOf<'QUEUED'>>): number {
  return bench.leases.take({
    task: taskKey(event.tenant, event.taskId),
    attempt: event.attempt + 1,
    ackSubject: delivery.ackSubject,
    ackWaitMs: bench.ackWaitMs(delivery.type),
    renewUntil: Number.POSITIVE_INFINITY,
    confirmedAt: delivery.receivedAt,
  });
}

/** The payload rides in the QUEUED event when it is small; else in an earlier event. */
async function loadPayload(bench: Bench, { state, queued }: Attempt): Promise<Parsed<Json>> {
  // null is a payload.
  const { payload: inline = state.payload } = queued.event.data;
  if (inline !== undefined) return { ok: true, value: inline };
  const seq = state.payloadSeq;
  const found = seq === undefined ? undefined : (await bench.log.readEvent(seq))?.event;
  const payload = found === undefined ? undefined : payloadIn(found);
  if (payload !== undefined) return { ok: true, value: payload };
  return { ok: false, reason: `the event ${seq ?? '(unknown)'} that held the payload is gone` };
}

/** Records that the attempt runs; false when it is no longer this worker's. */
async function start(bench: Bench, attempt: Attempt): Promise<boolean> {
  const { tenant, id: taskId } = attempt.state;
  const started = await execute(bench.log, { tenant, taskId, known: attempt.state }, () => ({
    ...commandMeta(bench, attempt.traced.trace),
    kind: 'start',
    attempt: attempt.number,
  }));
  if (!started.ok) return false;
  attempt.state = started.value.state;
  if (attempt.state.cancelRequested) attempt.abort('cancelled');
  return true;
}

async function run(bench: Bench, attempt: Attempt, payload: Parsed<Json>): Promise<Outcome> {
  if (!payload.ok) return notRetryable('PayloadGone', 'payload_gone', payload.reason);
  const valid = validate(attempt, payload.value);
  if (!valid.ok) return notRetryable('InvalidPayload', 'payload_invalid', valid.reason);
  // It was called off before it began: there is nothing to wait for.
  if (attempt.abortCause !== undefined)
    return outcomeOf({ kind: 'given_up' }, attempt.abortCause, attempt.runnable, bench.resultLimits);

  const limit = limitOf(bench, attempt);
  const timer = setTimeout(() => attempt.abort(limit.cause), Math.min(LONGEST_TIMER_MS, limit.ms));
  bench.leases.setRenewUntil(attempt.leaseSlot, monotonicMs() + limit.ms + attempt.abortGraceMs);
  const announcing =
    limit.ms > bench.carryEveryMs ? keepAnnouncing(bench, attempt, payload.value) : undefined;
  const context = new Context({
    task: taskInfoOf(attempt.state),
    payload: valid.value,
    attempt,
    logger: bench.logger,
    showProgress: (progress) => bench.leases.showProgress(attempt.task, attempt.number, progress),
  });
  attempt.payload = valid.value;
  bench.hooks.started?.({ task: context.task, payload: valid.value });
  const ending = await within(attempt.traced, () =>
    runHandler(attempt.runnable, context, (giveUp) => attempt.onGivenUp(giveUp)),
  );
  clearTimeout(timer);
  clearInterval(announcing);
  attempt.end();
  return outcomeOf(ending, attempt.abortCause, attempt.runnable, bench.resultLimits);
}

/** An attempt that may outlive the hot window announces its task again, so that the log does not forget it (rule 5). */
function keepAnnouncing(bench: Bench, attempt: Attempt, payload: Json): NodeJS.Timeout {
  const { tenant, id: taskId } = attempt.state;
  return setInterval(() => {
    announce(bench, attempt, payload).catch((error: unknown) =>
      bench.logger.warn({ taskId, tenant, err: error }, 'task not announced again yet'),
    );
  }, bench.carryEveryMs);
}

/** From the whole history: the attempt's own state began with QUEUED, which does not say all. */
async function announce(bench: Bench, attempt: Attempt, payload: Json): Promise<void> {
  const { tenant, id: taskId, seq } = attempt.state;
  const state = await bench.log.readState(tenant, taskId, seq);
  if (state === undefined || state.holder !== bench.actor.id || state.attempt !== attempt.number) return;
  const whole = { ...state, payload: state.payload ?? payload };
  const decided = decide(whole, { ...commandMeta(bench, attempt.traced.trace), kind: 'carry' });
  if (!decided.ok) return;
  const event = decided.value;
  const outcome = await bench.log.append(event, state.seq);
  if (outcome.status === 'stored' && outcome.seq > attempt.state.seq)
    attempt.state = evolve(whole, { seq: outcome.seq, storedAt: event.at, event });
}

function validate({ runnable }: Attempt, payload: Json): Parsed<unknown> {
  try {
    return runnable.parsePayload(payload);
  } catch (error) {
    return { ok: false, reason: describeThrown(error).message };
  }
}

/** The attempt's timeout, or the task's deadline when that is sooner. */
function limitOf({ clock }: Bench, { state }: Attempt): { cause: 'timeout' | 'deadline'; ms: number } {
  const { timeoutMs } = policyOf(state);
  const { deadlineAt } = state.facts;
  const untilDeadline = deadlineAt === undefined ? Number.POSITIVE_INFINITY : deadlineAt - clock.now();
  return untilDeadline < timeoutMs
    ? { cause: 'deadline', ms: Math.max(0, untilDeadline) }
    : { cause: 'timeout', ms: timeoutMs };
}
