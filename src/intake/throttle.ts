import type { CommandOf } from '../domain/commands.ts';
import type { EventLog } from '../log/event-log.ts';
import { execute } from '../log/handle.ts';
import { taskIdOfWindow } from './identity.ts';
import { issue } from './issue.ts';
import { accepted, outcomeOf, refused, refusedBy, type SubmitOutcome } from './outcome.ts';
import type { Window } from './window.ts';

/**
 * The first submission of a key in a window makes the task, whoever takes it: the window is part of the task's id, so the
 * log accepts one. `now`: the servers' time of the submission, the same when it comes a second time.
 */
export function submitThrottled(
  log: Pick<EventLog, 'append' | 'readState' | 'readTask'>,
  command: CommandOf<'ingest'>,
  { key, windowMs, now }: Extract<Window, { kind: 'throttle' }> & { readonly now: number },
): Promise<SubmitOutcome> {
  const { tenant, type } = command;
  const name = `${type} ${windowMs} ${Math.floor(now / windowMs)} ${key}`;
  const taskId = taskIdOfWindow(tenant, name);
  return outcomeOf(async () => {
    const result = await execute(log, { tenant, taskId, known: 'none' }, () => ({
      ...command,
      taskId,
      throttle: { key, windowMs },
    }));
    if (result.ok) return accepted(taskId, result.value.seq);
    if (result.error.code !== 'task_exists') return refusedBy(result.error);
    const [first] = await log.readTask(tenant, taskId);
    if (first === undefined) return refused([issue('append_conflict', { taskId })]);
    return {
      ok: true,
      id: taskId,
      status: 'INGESTED',
      seq: first.seq,
      replayed: true,
      deduplicated: 'throttle',
    };
  });
}
