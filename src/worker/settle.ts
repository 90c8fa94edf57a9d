import { setTimeout as pause } from 'node:timers/promises';
import { TaskledgerError } from '../domain/errors.ts';
import type { TaskEvent } from '../domain/events.ts';
import { execute } from '../log/handle.ts';
import type { Attempt } from './attempt.ts';
import { type Bench, commandMeta } from './bench.ts';
import { ACK } from './delivery.ts';
import type { Outcome } from './outcome.ts';
import type { SettleCommand } from './spool/spool-format.ts';

/** What was settled: the outcome that counts, and its event when this worker stored one. */
export interface Settlement {
  /** `spooled`: the worker ends, and another will tell the log. */
  readonly outcome: Outcome | { readonly status: 'spooled' };
  readonly event: TaskEvent | undefined;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Tells the log how the attempt ended, and acks only when that is stored (rule 3). While the log does not answer it is
 * told again and again: the lease may run out meanwhile, but until somebody takes the task over the outcome still
 * counts, and after that the fence refuses it. A refusal makes the attempt `lost`.
 *
 * Meanwhile the spool keeps the outcome on the disk. When the worker is `abandoned` before the log has answered, it
 * stays there for another to tell; without a spool it is lost.
 */
export async function settle(
  bench: Bench,
  attempt: Attempt,
  outcome: Outcome,
  runMs: number,
): Promise<Settlement> {
  if (outcome.status === 'lost') return { outcome, event: undefined };
  const { tenant, id: taskId } = attempt.state;
  // One event id for all tries: by it the log recognises an earlier success of ours.
  const meta = commandMeta(bench, attempt.traced.trace);
  const command = commandOf(outcome, attempt, {
    ...meta,
    runMs,
    dice: bench.dice(),
    workerVersion: bench.workerVersion,
  });
  const slip = bench.spool.slip({ tenant, taskId, command });
  try {
    const settlement = await tell(bench, attempt, outcome, command);
    if (settlement === undefined)
      return (await slip.keep())
        ? { outcome: { status: 'spooled' }, event: undefined }
        : lost('lease_expired');
    slip.settled();
    // While it was on the disk, another may have told it.
    if (slip.kept && settlement.outcome.status === 'lost' && (await isStored(bench, attempt, command)))
      return { outcome, event: undefined };
    return settlement;
  } catch (error) {
    slip.settled();
    throw error;
  }
}

/** Answers undefined when the worker is abandoned first. */
async function tell(
  bench: Bench,
  attempt: Attempt,
  outcome: Exclude<Outcome, { status: 'lost' }>,
  command: SettleCommand,
): Promise<Settlement | undefined> {
  const { tenant, id: taskId } = attempt.state;
  for (let tries = 0; ; tries++) {
    try {
      // Only the log knows of the request that makes the cancellation legal.
      if (outcome.status === 'cancelled' && !attempt.state.cancelRequested)
        attempt.state = (await bench.log.readState(tenant, taskId, attempt.cancelSeq)) ?? attempt.state;
      const told = await execute(bench.log, { tenant, taskId, known: attempt.state }, () => command);
      if (told.ok) {
        bench.tell(attempt.ackSubject, ACK);
        return { outcome, event: told.value.event };
      }
      if (told.error.code !== 'append_conflict') return lost('superseded');
    } catch (error) {
      if (!(error instanceof TaskledgerError && error.code === 'log_unavailable')) throw error;
      bench.logger.warn(
        { taskId, tenant, outcome: outcome.status, tries, err: error },
        'outcome not stored yet',
      );
    }
    if (bench.abandoned()) return undefined;
    await pause(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(tries, 10)));
  }
}

async function isStored(bench: Bench, { state }: Attempt, { eventId }: SettleCommand): Promise<boolean> {
  const events = await bench.log.readTask(state.tenant, state.id).catch(() => []);
  return events.some(({ event }) => event.id === eventId);
}

const lost = (reason: 'superseded' | 'lease_expired'): Settlement => ({
  outcome: { status: 'lost', reason },
  event: undefined,
});

type SettleMeta = ReturnType<typeof commandMeta> & {
  readonly runMs: number;
  readonly dice: number;
  readonly workerVersion: string | undefined;
};

function commandOf(
  outcome: Exclude<Outcome, { status: 'lost' }>,
  { number: attempt }: Attempt,
  { runMs: ranFor, dice, workerVersion, ...meta }: SettleMeta,
): SettleCommand {
  const runMs = Math.max(0, Math.round(ranFor));
  switch (outcome.status) {
    case 'completed':
      return {
        ...meta,
        kind: 'complete',
        attempt,
        runMs,
        ...(outcome.result === undefined ? {} : { result: outcome.result }),
      };
    case 'failed':
      return {
        ...meta,
        kind: 'fail',
        attempt,
        runMs,
        error: outcome.error,
        dice,
        ...(outcome.final === undefined ? {} : { final: outcome.final }),
        ...(workerVersion === undefined ? {} : { workerVersion }),
      };
    case 'cancelled':
      return { ...meta, kind: 'cancel' };
    case 'released':
      return { ...meta, kind: 'lose', attempt, reason: outcome.reason, dice };
    default:
      return outcome satisfies never;
  }
}
