import type { Recorded } from '../../src/domain/events.ts';
import { type GroupChange, GroupChanges } from './group.ts';
import { concerns, type Known, record, UNKNOWN } from './letter.ts';

/** The events of a batch that concern one task's dead letter, in order. */
export interface TaskNews {
  readonly tenant: string;
  readonly id: string;
  readonly events: Recorded[];
}

export function apply(batch: readonly Recorded[]): TaskNews[] {
  const news = new Map<string, TaskNews>();
  for (const recorded of batch) {
    const { event } = recorded;
    if (!concerns(event)) continue;
    const key = keyOf(event.tenant, event.taskId);
    const task = news.get(key);
    if (task === undefined) news.set(key, { tenant: event.tenant, id: event.taskId, events: [recorded] });
    else task.events.push(recorded);
  }
  return [...news.values()];
}

export const keyOf = (tenant: string, id: string): string => `${tenant} ${id}`;

export interface Outcome {
  readonly tasks: readonly {
    readonly tenant: string;
    readonly id: string;
    readonly before: Known;
    readonly after: Known;
  }[];
  readonly groups: readonly GroupChange[];
}

/** Pure: what the news make of what was known. Where a batch ends does not matter. */
export function digest(
  news: readonly TaskNews[],
  knownOf: (tenant: string, id: string) => Known | undefined,
): Outcome {
  const groups = new GroupChanges();
  const tasks = news.map(({ tenant, id, events }) => {
    const before = knownOf(tenant, id) ?? UNKNOWN;
    let after = before;
    for (const recorded of events) {
      after = record(after, recorded);
      if (recorded.event.kind === 'DEAD_LETTER' && after.letter !== null)
        groups.death(tenant, id, after.letter);
    }
    groups.moved(tenant, before.letter, after.letter);
    return { tenant, id, before, after };
  });
  return { tasks, groups: groups.list() };
}
