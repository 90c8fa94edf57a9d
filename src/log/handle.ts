import type { Command } from '../domain/commands.ts';
import { decide } from '../domain/decide.ts';
import { err, ok, type Result } from '../domain/errors.ts';
import type { TaskEvent } from '../domain/events.ts';
import { evolve, type TaskState } from '../domain/task.ts';
import type { EventLog } from './event-log.ts';

/** Conflicts in a row after which a task is left to those who move it. */
const MAX_CONFLICTS = 10;

export interface Target {
  readonly tenant: string;
  readonly taskId: string;
  /** What the caller already knows, to spare a read; `none`: assume that the task does not exist. */
  readonly known?: TaskState | 'none';
}

export interface Executed {
  readonly event: TaskEvent;
  readonly seq: number;
  /** The state after the event. Its times stand on `command.at`; the log's own storing time is a little later. */
  readonly state: TaskState;
}

/**
 * Carries out a command on a task:
 *
 *   (1) take the known state, or read it   (2) build the command, decide   (3) append, expecting the state's sequence
 *   (4) on a conflict read what is newer, and go to 2                      (5) evolve
 *
 * `build` is called again after a conflict, with the newer state. Answers decide's refusals, and `append_conflict` when
 * others keep moving the task. Throws `log_unavailable` when the log does not answer: the event may or may not be stored.
 */
export async function execute(
  log: Pick<EventLog, 'append' | 'readState'>,
  { tenant, taskId, known }: Target,
  build: (state: TaskState | undefined) => Command,
): Promise<Result<Executed>> {
  let state = known === 'none' ? undefined : (known ?? (await log.readState(tenant, taskId)));
  for (let conflicts = 0; conflicts < MAX_CONFLICTS; conflicts += 1) {
    const command = build(state);
    const decided = decide(state, command);
    if (!decided.ok) return decided;
    const event = decided.value;
    const outcome = await log.append(event, state?.seq ?? 0);
    if (outcome.status === 'stored') {
      const { seq } = outcome;
      return ok({ event, seq, state: evolve(state, { seq, storedAt: command.at, event }) });
    }
    state = await log.readState(tenant, taskId, outcome.lastSeq);
  }
  return err('append_conflict', { taskId });
}
