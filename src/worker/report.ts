import type { Attempt } from './attempt.ts';
import type { Bench } from './bench.ts';
import type { AttemptInfo, WorkerHooks } from './hooks.ts';
import { taskInfoOf } from './run-handler.ts';
import type { Settlement } from './settle.ts';

/** Counts a settled attempt and tells the hooks of it. */
export const report = (bench: Bench, { state, payload }: Attempt, settlement: Settlement): void =>
  reportOf(bench, { task: taskInfoOf(state), payload }, settlement);

export function reportOf(bench: Bench, { task, payload }: AttemptInfo, { outcome, event }: Settlement): void {
  const { counters, hooks, logger } = bench;
  counters[outcome.status] += 1;
  switch (outcome.status) {
    case 'completed':
      hooks.completed?.({ task, payload, result: outcome.result });
      break;
    case 'failed': {
      const { error } = outcome;
      const next = event?.kind === 'FAILED' ? event.data.next : undefined;
      const retryInMs = next !== undefined && 'retryInMs' in next ? next.retryInMs : undefined;
      logger.debug({ taskId: task.id, error, retryInMs }, 'attempt failed');
      hooks.failed?.({ task, payload, error, retryInMs });
      break;
    }
    case 'cancelled':
      hooks.cancelled?.({ task, payload });
      break;
    case 'released':
      hooks.released?.({ task, payload });
      break;
    case 'spooled':
      logger.warn({ taskId: task.id, tenant: task.tenant }, 'outcome left in the spool');
      break;
    case 'lost': {
      const { reason: cause } = outcome;
      logger.warn({ taskId: task.id, tenant: task.tenant, attempt: task.attempt, cause }, 'attempt lost');
      hooks.lost?.({ task, payload, cause });
      break;
    }
    default:
      outcome satisfies never;
  }
}

/** Hooks whose faults are logged instead of reaching the attempt. */
export function guarded(hooks: WorkerHooks, logger: Bench['logger']): WorkerHooks {
  const entries = Object.entries(hooks).map(([name, hook]: [string, unknown]) => [
    name,
    (told: unknown) => {
      try {
        if (typeof hook === 'function') Reflect.apply(hook, hooks, [told]);
      } catch (error) {
        logger.error({ err: error, hook: name }, 'a hook failed');
      }
    },
  ]);
  return Object.fromEntries(entries) as WorkerHooks;
}
