import { v5 as uuidV5 } from 'uuid';
import type { Operation } from './operation.ts';

export interface TaskRef {
  readonly tenant: string;
  readonly taskId: string;
}

/** What one kind of bulk operation knows: which tasks, and what to do to each. */
export interface BulkKind {
  readonly kind: string;
  /**
   * The next targets after the cursor (null: from the beginning), at most `limit`. Their order must be one that tasks
   * neither enter nor change while the operation goes on, such as that of submission. May throw: then it is asked again.
   * Once stored, a page is not asked for again.
   */
  page(operation: Operation, at: { cursor: string | null; limit: number }): Promise<TargetPage>;
  /**
   * Does it to one task and names the outcome. May be called again for a task after a crash, so it must recognise what
   * it has done before: give its event the id `stepId`. A throw counts as failed, but for `log_unavailable`, after which
   * the page is tried again.
   */
  act(operation: Operation, target: TaskRef): Promise<string>;
}

export interface TargetPage {
  readonly targets: readonly TaskRef[];
  readonly nextCursor: string | null;
}

/** The id of the event that an operation appends to a task: the same whenever the step is repeated. */
export const stepId = ({ id }: Pick<Operation, 'id'>, { tenant, taskId }: TaskRef): string =>
  uuidV5(`${tenant} ${taskId}`, id);
