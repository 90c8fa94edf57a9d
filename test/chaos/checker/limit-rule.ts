import type { Recorded } from '../../../src/domain/events.ts';
import type { ConcurrencyLimit, Violation } from './evidence.ts';
import { lifeKey, lineOf } from './lives.ts';

/** Counts the running attempts of each limit's scope along the log: `limits`. One violation a limit, its first. */
export const checkLimits = (log: readonly Recorded[], limits: readonly ConcurrencyLimit[]): Violation[] =>
  limits.flatMap((limit) => checkLimit(log, limit));

function checkLimit(log: readonly Recorded[], { tenant, type, max }: ConcurrencyLimit): Violation[] {
  /** The claim of each attempt that runs. */
  const running = new Map<string, Recorded>();
  for (const recorded of log) {
    const { event } = recorded;
    if (tenant !== undefined && event.tenant !== tenant) continue;
    if (type !== undefined && event.type !== type) continue;
    const key = lifeKey(event.tenant, event.taskId);
    switch (event.kind) {
      case 'CLAIMED':
        running.set(key, recorded);
        if (running.size > max)
          return [
            {
              rule: 'limits',
              message: `${running.size} attempts of ${tenant ?? 'any tenant'}/${type ?? 'any type'} run at once, the limit is ${max}`,
              witness: [...running.values()].map(lineOf),
            },
          ];
        break;
      case 'COMPLETED':
      case 'FAILED':
      case 'RETRY_CLAIMED':
      case 'CANCELLED':
        running.delete(key);
        break;
      default:
    }
  }
  return [];
}
