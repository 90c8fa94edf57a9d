import type { EventKind, Recorded } from '../../../src/domain/events.ts';
import type { ConcurrencyLimit, Violation } from './evidence.ts';
import { lifeKey, lineOf } from './lives.ts';

/** Counts the running attempts of each limit's scope along the log: `limits`. One violation a limit, its first. */
export const checkLimits = (log: readonly Recorded[], limits: readonly ConcurrencyLimit[]): Violation[] =>
  limits.flatMap((limit) => checkLimit(log, limit));

function checkLimit(log: readonly Recorded[], limit: ConcurrencyLimit): Violation[] {
  const { tenant, type, eachKey, max } = limit;
  const keys = eachKey ? keysOf(log) : undefined;
  /** The claim of each attempt that runs, by what is counted together. */
  const groups = new Map<string, Map<string, Recorded>>();
  for (const recorded of log) {
    const { event } = recorded;
    if (tenant !== undefined && event.tenant !== tenant) continue;
    if (type !== undefined && event.type !== type) continue;
    const task = lifeKey(event.tenant, event.taskId);
    const group = keys === undefined ? '' : keys.get(task);
    if (group === undefined) continue;
    const running = groups.get(group) ?? new Map<string, Recorded>();
    groups.set(group, running);
    if (ENDS.has(event.kind)) running.delete(task);
    if (event.kind !== 'CLAIMED') continue;
    running.set(task, recorded);
    if (running.size > max)
      return [
        {
          rule: 'limits',
          message: `${running.size} attempts of ${scopeText(limit, group)} run at once, the limit is ${max}`,
          witness: [...running.values()].map(lineOf),
        },
      ];
  }
  return [];
}

const ENDS: ReadonlySet<EventKind> = new Set(['COMPLETED', 'FAILED', 'RETRY_CLAIMED', 'CANCELLED']);

const scopeText = ({ tenant, type }: ConcurrencyLimit, group: string): string =>
  group === '' ? `${tenant ?? 'any tenant'}/${type ?? 'any type'}` : `the key ${group}`;

/** Tenant, type and concurrency key of each task that has one. */
function keysOf(log: readonly Recorded[]): ReadonlyMap<string, string> {
  const keys = new Map<string, string>();
  for (const { event } of log)
    if (event.kind === 'INGESTED' && event.data.concurrencyKey !== undefined)
      keys.set(
        lifeKey(event.tenant, event.taskId),
        `${event.tenant}/${event.type}/${event.data.concurrencyKey}`,
      );
  return keys;
}
