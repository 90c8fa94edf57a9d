import type { DispatchCore } from './core.ts';
import type { LineStats } from './decisions.ts';
import type { Unserved } from './no-workers.ts';

/** What the leading dispatcher says on `names.backlog`, as JSON. */
export interface BacklogNotice {
  /** Tasks of each type that wait, QUEUED and unclaimed included, delayed ones not. */
  readonly waiting: Readonly<Record<string, number>>;
  /** Tasks of each type that wait for a time. */
  readonly delayed: Readonly<Record<string, number>>;
  /** Types that have tasks waiting and no worker that could run them. */
  readonly noWorkers: readonly Unserved[];
  /** What waits by tenant over all types, for the tenants that have a `maxBacklog`. */
  readonly tenants: Readonly<Record<string, number>>;
  /** By line: work that could be claimed, and the claims that this leader has seen. */
  readonly flow: Readonly<Record<string, Pick<LineStats, 'ready' | 'claimed'>>>;
}

export const backlogNotice = (core: DispatchCore, noWorkers: readonly Unserved[]): BacklogNotice => ({
  waiting: core.waiting(),
  delayed: core.delayed(),
  tenants: core.waitingByTenant(),
  noWorkers,
  flow: core.flow(),
});
