import { decide } from '../domain/decide.ts';
import type { EventOf, Recorded } from '../domain/events.ts';
import { deadLetterReason, evolve, type TaskState } from '../domain/task.ts';
import { execute } from '../log/handle.ts';
import { attemptKey } from './attempt.ts';
import { type Bench, commandMeta, handBack } from './bench.ts';
import { ACK, type Delivery, IN_PROGRESS } from './delivery.ts';
import { type Holder, judge, runningHolder, type Verdict } from './redelivery.ts';
import { taskKey } from './worker-entry.ts';

type Queued = Recorded<EventOf<'QUEUED'>>;

/** Conflicts in a row after which the delivery is left to whoever moves the task. */
const MAX_LOOKS = 5;
/** A suspicion is looked at again after this share of the ack-wait. */
const LOOK_AGAIN_SHARE = 6;

/**
 * Makes the work item this worker's own, or does what else is to be done with the delivery: ack it when the task has
 * moved on, hand it back when its holder lives, record that the attempt was lost when it does not. Answers the claimed
 * state, or undefined when there is nothing to run. Throws `log_unavailable`: then the delivery comes again by itself.
 */
export async function claim(
  bench: Bench,
  delivery: Delivery,
  queued: Queued,
): Promise<TaskState | undefined> {
  // A first delivery is taken at its word: if the task has moved, the fence says so.
  let verdict: Verdict =
    delivery.deliveryCount > 1
      ? await look(bench, queued, queued.seq)
      : { kind: 'claim', state: evolve(undefined, queued) };
  for (let looks = 0; looks < MAX_LOOKS; looks++) {
    if (verdict.kind !== 'claim') {
      await conclude(bench, delivery, queued, verdict);
      return undefined;
    }
    if (deadLetterReason(verdict.state, bench.clock.now()) !== undefined) {
      await letDie(bench, delivery, queued, verdict.state);
      return undefined;
    }
    const claimed = await tryClaim(bench, queued, verdict.state);
    if ('state' in claimed) return claimed.state;
    verdict = await look(bench, queued, claimed.lastSeq);
  }
  handBack(bench, delivery, bench.ackWaitMs(delivery.type) / LOOK_AGAIN_SHARE);
  return undefined;
}

async function tryClaim(
  bench: Bench,
  queued: Queued,
  state: TaskState,
): Promise<{ state: TaskState } | { lastSeq: number }> {
  const decided = decide(state, { ...commandMeta(bench, queued.event.trace), kind: 'claim' });
  if (!decided.ok) return { lastSeq: state.seq };
  const event = decided.value;
  const outcome = await bench.log.append(event, state.seq);
  return outcome.status === 'stored'
    ? { state: evolve(state, { seq: outcome.seq, storedAt: event.at, event }) }
    : { lastSeq: Math.max(outcome.lastSeq, state.seq) };
}

/** Reads the task, and judges the delivery by it. */
async function look(bench: Bench, queued: Queued, atLeastSeq: number): Promise<Verdict> {
  const { tenant, taskId } = queued.event;
  const state = await bench.log.readState(tenant, taskId, atLeastSeq);
  const holderId = runningHolder(state, queued);
  let holder: Holder | undefined;
  if (holderId !== undefined) {
    const key = attemptKey(taskKey(tenant, taskId), queued.event.attempt + 1);
    holder =
      holderId === bench.actor.id
        ? { kind: 'self', active: bench.active.has(key) }
        : { kind: 'other', standing: await bench.standingOf(holderId, key) };
  }
  return judge(state, queued, holder);
}

async function conclude(
  bench: Bench,
  delivery: Delivery,
  queued: Queued,
  verdict: Exclude<Verdict, { kind: 'claim' }>,
): Promise<void> {
  const { tenant, taskId, trace, attempt } = queued.event;
  switch (verdict.kind) {
    case 'settled':
      return bench.tell(delivery.ackSubject, ACK);
    case 'mine': {
      const mine = bench.active.get(attemptKey(taskKey(tenant, taskId), attempt + 1));
      if (mine !== undefined) mine.ackSubject = delivery.ackSubject;
      return bench.tell(delivery.ackSubject, IN_PROGRESS);
    }
    case 'wait':
      return handBack(bench, delivery, bench.ackWaitMs(delivery.type) / LOOK_AGAIN_SHARE);
    case 'lose': {
      const { state, reason } = verdict;
      const lost = await execute(bench.log, { tenant, taskId, known: state }, () => ({
        ...commandMeta(bench, trace),
        kind: 'lose',
        attempt: attempt + 1,
        reason,
        dice: bench.dice(),
      }));
      if (lost.ok) {
        bench.counters.reclaimed += 1;
        bench.logger.info(
          { taskId, tenant, attempt: attempt + 1, holder: state.holder, reason },
          'attempt recorded as lost',
        );
      } else if (lost.error.code === 'append_conflict') return handBack(bench, delivery);
      return bench.tell(delivery.ackSubject, ACK);
    }
    default:
      return verdict satisfies never;
  }
}

/** Its deadline has passed while it waited: no attempt is made. */
async function letDie(bench: Bench, delivery: Delivery, queued: Queued, known: TaskState): Promise<void> {
  const { tenant, taskId, trace } = queued.event;
  const dead = await execute(bench.log, { tenant, taskId, known }, () => ({
    ...commandMeta(bench, trace),
    kind: 'dead_letter',
  }));
  if (dead.ok) bench.logger.info({ taskId, tenant }, 'deadline passed before the attempt');
  bench.tell(delivery.ackSubject, ACK);
}
