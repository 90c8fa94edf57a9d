import { setTimeout as pause } from 'node:timers/promises';
import type { Command } from '../domain/commands.ts';
import { TaskledgerError } from '../domain/errors.ts';
import type { TaskEvent } from '../domain/events.ts';
import { execute } from '../log/handle.ts';
import type { Attempt } from './attempt.ts';
import { type Bench, commandMeta } from './bench.ts';
import { ACK } from './delivery.ts';
import type { Outcome } from './outcome.ts';

/** What was settled: the outcome that counts, and its event when this worker stored one. */
export interface Settlement {
  readonly outcome: Outcome;
  readonly event: TaskEvent | undefined;
}

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 2_000;

/**
 * Tells the log how the attempt ended, and acks only when that is stored (rule 3). While the log does not answer it is
 * told again and again: the lease may run out meanwhile, but until somebody takes the task over the outcome still
 * counts, and after that the fence refuses it. A refusal makes the attempt `lost`.
 *
 * What is still untold when the worker is `abandoned` is where a spool on disk will take over.
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
  const meta = commandMeta(bench, attempt.queued.event.trace);
  const command = commandOf(outcome, attempt, { ...meta, runMs, dice: bench.dice() });
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
    if (bench.abandoned()) return lost('lease_expired');
    await pause(Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(tries, 10)));
  }
}

const lost = (reason: 'superseded' | 'lease_expired'): Settlement => ({
  outcome: { status: 'lost', reason },
  event: undefined,
});

type SettleMeta = ReturnType<typeof commandMeta> & { readonly runMs: number; readonly dice: number };

function commandOf(
  outcome: Exclude<Outcome, { status: 'lost' }>,
  { number: attempt }: Attempt,
  { runMs: ranFor, dice, ...meta }: SettleMeta,
): Command {
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
      };
    case 'cancelled':
      return { ...meta, kind: 'cancel' };
    case 'released':
      return { ...meta, kind: 'lose', attempt, reason: outcome.reason, dice };
    default:
      return outcome satisfies never;
  }
}
