import type { Command } from '../domain/commands.ts';
import type { Result } from '../domain/errors.ts';
import type { Facts, Status } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import type { Priority } from '../domain/names.ts';
import type { TaskState } from '../domain/task.ts';
import type { EventLog } from '../log/event-log.ts';
import { type Executed, execute } from '../log/handle.ts';

/** Where a dead letter is known: in the log as long as the hot window reaches, in the read models after it. */
export interface LetterSources {
  readonly log: Pick<EventLog, 'append' | 'readState' | 'readTask'>;
  readonly query: LetterMemories;
}

/** What the read models know of a task that died. */
export interface LetterMemories {
  task(
    tenant: string,
    taskId: string,
  ): Promise<{
    readonly value:
      | {
          readonly type: string;
          readonly status: Status;
          readonly round: number;
          readonly attempt: number;
          readonly priority: number;
          readonly submittedAt: string;
          readonly payload: Json;
        }
      | undefined;
  }>;
  deadLetterMemory(
    tenant: string,
    taskId: string,
  ): Promise<{ readonly state: string; readonly facts: Facts | null } | undefined>;
}

/**
 * Carries out a command on a dead letter, of whatever age. One that the log has forgotten is taken from the read models;
 * the fence then expects what the log still has of it (mostly nothing), so that of two who do this at once one is refused.
 * Throws `log_unavailable` and, for a forgotten letter, `read_model_unavailable`.
 */
export async function commandLetter(
  { log, query }: LetterSources,
  { tenant, taskId }: { readonly tenant: string; readonly taskId: string },
  build: (state: TaskState | undefined) => Command,
): Promise<Result<Executed>> {
  const result = await execute(log, { tenant, taskId }, build);
  if (result.ok || result.error.code !== 'task_missing') return result;
  const known = await remembered({ log, query }, tenant, taskId);
  return known === undefined ? result : execute(log, { tenant, taskId, known }, build);
}

/** Undefined for a task that never died: nothing else is kept well enough to begin it anew. */
async function remembered(
  { log, query }: LetterSources,
  tenant: string,
  taskId: string,
): Promise<TaskState | undefined> {
  const [events, memory, { value: task }] = await Promise.all([
    log.readTask(tenant, taskId),
    query.deadLetterMemory(tenant, taskId),
    query.task(tenant, taskId),
  ]);
  if (memory === undefined || task === undefined) return undefined;
  const { facts, state } = memory;
  return {
    id: taskId,
    tenant,
    type: task.type,
    status: task.status,
    seq: events.at(-1)?.seq ?? 0,
    round: task.round,
    attempt: task.attempt,
    priority: task.priority as Priority,
    facts: facts ?? { submittedAt: Date.parse(task.submittedAt), attemptsBefore: 0, lost: 0 },
    holder: undefined,
    dueAt: undefined,
    next: undefined,
    cancelRequested: false,
    discarded: state === 'discarded',
    fingerprint: undefined,
    payload: task.payload,
    payloadSeq: undefined,
  };
}
