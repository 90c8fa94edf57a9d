import { execute } from '../../log/handle.ts';
import type { Bench } from '../bench.ts';
import type { Outcome } from '../outcome.ts';
import { reportOf } from '../report.ts';
import { taskInfoOf } from '../run-handler.ts';
import type { SettleCommand, SpooledOutcome } from './spool-format.ts';

/**
 * Tells the log an outcome of a worker that is dead. The command still names that worker: the attempt is its, and the
 * fence accepts the outcome unless another has taken the task over. Throws `log_unavailable`.
 */
export async function tellLate(bench: Bench, { tenant, taskId, command }: SpooledOutcome): Promise<void> {
  // It may have been stored already, unheard.
  const earlier = (await bench.log.readTask(tenant, taskId)).find(
    ({ event }) => event.id === command.eventId,
  );
  if (earlier !== undefined) return;
  const known = await bench.log.readState(tenant, taskId);
  const told =
    known === undefined ? undefined : await execute(bench.log, { tenant, taskId, known }, () => command);
  const stored = told?.ok === true;
  const fields = { taskId, tenant, worker: command.actor.id, outcome: command.kind };
  bench.logger.info(
    fields,
    stored ? 'spooled outcome told' : 'spooled outcome refused: the task has moved on',
  );
  bench.counters.inherited += 1;
  if (known === undefined) return;
  const attempt = 'attempt' in command ? command.attempt : known.attempt;
  reportOf(
    bench,
    { task: { ...taskInfoOf(known), attempt }, payload: undefined },
    stored
      ? { outcome: outcomeIn(command), event: told.value.event }
      : { outcome: { status: 'lost', reason: 'superseded' }, event: undefined },
  );
}

function outcomeIn(command: SettleCommand): Outcome {
  switch (command.kind) {
    case 'complete':
      return { status: 'completed', result: command.result };
    case 'fail':
      return {
        status: 'failed',
        error: command.error,
        ...(command.final === undefined ? {} : { final: command.final }),
      };
    case 'cancel':
      return { status: 'cancelled' };
    case 'lose':
      return { status: 'released', reason: 'shutdown' };
    default:
      return command satisfies never;
  }
}
