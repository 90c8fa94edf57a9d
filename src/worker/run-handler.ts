import { FIRST_VERSION } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import type { TaskState } from '../domain/task.ts';
import type { Logger } from '../observe/log.ts';
import type { Attempt } from './attempt.ts';
import type { HandlerContext, Runnable, TaskInfo } from './handler.ts';
import type { Ending } from './outcome.ts';

export const taskInfoOf = (state: TaskState): TaskInfo => ({
  id: state.id,
  tenant: state.tenant,
  type: state.type,
  priority: state.priority,
  round: state.round,
  attempt: state.attempt,
  submittedAt: state.facts.submittedAt,
  version: state.facts.version ?? FIRST_VERSION,
  deadlineAt: state.facts.deadlineAt,
});

/** What a handler sees. The signal and the logger are made when they are asked for: most attempts use neither. */
export class Context implements HandlerContext<never> {
  readonly task: TaskInfo;
  readonly payload: never;
  readonly attempt: number;
  readonly idempotencyKey: string;
  readonly #running: Pick<Attempt, 'signal'>;
  readonly #logger: Logger;
  readonly #showProgress: (progress: Json) => void;
  #log: Logger | undefined;

  constructor(parts: {
    task: TaskInfo;
    payload: unknown;
    attempt: Pick<Attempt, 'signal'>;
    logger: Logger;
    showProgress: (progress: Json) => void;
  }) {
    this.task = parts.task;
    this.payload = parts.payload as never;
    this.attempt = parts.task.attempt;
    this.idempotencyKey = `${parts.task.tenant}:${parts.task.id}`;
    this.#running = parts.attempt;
    this.#logger = parts.logger;
    this.#showProgress = parts.showProgress;
  }

  get signal(): AbortSignal {
    return this.#running.signal;
  }

  get log(): Logger {
    const { id, tenant, type, attempt } = this.task;
    this.#log ??= this.#logger.child({ taskId: id, tenant, type, attempt });
    return this.#log;
  }

  // Bound, so that a handler may take it out of the context.
  readonly heartbeat = (progress?: Json): void => {
    if (progress !== undefined) this.#showProgress(progress);
  };
}

/**
 * Runs a handler until it returns, throws, or is given up. Never rejects: whatever the handler does later, a late
 * rejection included, is ignored.
 */
export function runHandler(
  runnable: Runnable,
  context: Context,
  onGivenUp: (callback: () => void) => void,
): Promise<Ending> {
  return new Promise((resolve) => {
    onGivenUp(() => resolve({ kind: 'given_up' }));
    let result: unknown;
    try {
      result = runnable.run(context);
    } catch (thrown) {
      resolve({ kind: 'threw', thrown });
      return;
    }
    // Promise.resolve also takes foreign thenables, and turns a throwing `then` into a rejection.
    Promise.resolve(result).then(
      (value) => resolve({ kind: 'returned', value }),
      (thrown: unknown) => resolve({ kind: 'threw', thrown }),
    );
  });
}
