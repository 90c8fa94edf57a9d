import type { Recorded, Status, TaskEvent } from '../../src/domain/events.ts';

/** How the number of tasks in one status changes. */
export interface CountChange {
  readonly tenant: string;
  readonly type: string;
  readonly priority: number;
  readonly status: Status;
  delta: number;
}

/** Each event moves a task from one status to another, or to another priority; a counter that ends where it began is left out. */
export function apply(batch: readonly Recorded[]): CountChange[] {
  const changes = new Map<string, CountChange>();
  const add = (event: TaskEvent, status: Status, delta: number, priority = event.priority): void => {
    const key = `${event.tenant} ${event.type} ${priority} ${status}`;
    const change = changes.get(key);
    if (change !== undefined) change.delta += delta;
    else {
      const { tenant, type } = event;
      changes.set(key, { tenant, type, priority, status, delta });
    }
  };
  for (const { event } of batch) {
    if (event.kind === 'CANCEL_REQUESTED' || event.kind === 'CARRIED' || event.kind === 'DISCARDED') continue;
    if (event.kind === 'RESCHEDULED') {
      if (event.from === null || event.data.fromPriority === undefined) continue;
      add(event, event.from, -1, event.data.fromPriority);
      add(event, event.from, 1);
      continue;
    }
    if (event.from !== null) add(event, event.from, -1);
    add(event, event.kind, 1);
  }
  return [...changes.values()].filter(({ delta }) => delta !== 0);
}
