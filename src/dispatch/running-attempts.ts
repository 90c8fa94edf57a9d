import type { TaskEvent } from '../domain/events.ts';
import { RUNNING } from '../domain/task.ts';

export interface RunningAttempt {
  readonly tenant: string;
  readonly taskId: string;
  readonly attempt: number;
  /** The worker incarnation that claimed it. */
  readonly holder: string;
}

/** Who runs what, folded from the log: as many entries as the fleet has busy slots. */
export class RunningAttempts {
  readonly #attempts = new Map<string, RunningAttempt>();

  get size(): number {
    return this.#attempts.size;
  }

  observe(event: TaskEvent): void {
    switch (event.kind) {
      case 'CLAIMED':
      case 'PROCESSING':
        this.#set(event, event.actor.id);
        return;
      case 'CARRIED': {
        const { status, holder } = event.data.state;
        if (RUNNING.has(status) && holder !== undefined) this.#set(event, holder);
        return;
      }
      case 'CANCEL_REQUESTED':
        return;
      default:
        this.#attempts.delete(keyOf(event));
    }
  }

  byHolder(): Map<string, RunningAttempt[]> {
    const byHolder = new Map<string, RunningAttempt[]>();
    for (const attempt of this.#attempts.values()) {
      const others = byHolder.get(attempt.holder);
      if (others === undefined) byHolder.set(attempt.holder, [attempt]);
      else others.push(attempt);
    }
    return byHolder;
  }

  /** All that `restore` needs to know the same. */
  get all(): readonly RunningAttempt[] {
    return [...this.#attempts.values()];
  }

  /** Before anything is observed. */
  restore(attempts: readonly RunningAttempt[]): void {
    for (const attempt of attempts) this.#attempts.set(keyOf(attempt), attempt);
  }

  #set(event: TaskEvent, holder: string): void {
    const { tenant, taskId, attempt } = event;
    this.#attempts.set(keyOf(event), { tenant, taskId, attempt, holder });
  }
}

const keyOf = ({ tenant, taskId }: Pick<TaskEvent, 'tenant' | 'taskId'>): string => `${tenant} ${taskId}`;
