import type { Status } from '../domain/events.ts';
import { holdsAt, type ScopedPause } from '../registry/controls.ts';
import { type Allowance, Block } from './allowance.ts';
import { type LiveTask, Mode, Spot } from './live-task.ts';

export type LimitKind =
  | 'type_concurrency'
  | 'tenant_concurrency'
  | 'tenant_type_concurrency'
  | 'tenant_rate'
  | 'tenant_type_rate'
  | 'concurrency_key';

/** One reason why a task is not running, or the fact that it is. Several may hold together; instants are ms since 1970. */
export type WhyFact =
  /** The dispatcher knows no such task: it has ended, or never was. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'running'; readonly status: Status; readonly attempt: number }
  /** QUEUED: handed to the workers, which have yet to claim it. */
  | { readonly kind: 'waiting_for_worker'; readonly ready: number; readonly running: number }
  /** Its turn has come: QUEUED is being recorded. */
  | { readonly kind: 'being_queued' }
  /** DEAD_LETTER or CANCELLED is about to be recorded. */
  | { readonly kind: 'ending' }
  /** `retry`: for the backoff after a failed attempt. `delayed`: tasks of its line that wait for a time, this one included. */
  | {
      readonly kind: 'due_later';
      readonly dueAt: number;
      readonly retry: boolean;
      readonly delayed: number;
    }
  | ({ readonly kind: 'paused' } & ScopedPause)
  /** `value` is a count of tasks, or tasks a second; `freeAt` when time alone lifts it. */
  | {
      readonly kind: 'limit';
      readonly limit: LimitKind;
      readonly value: number;
      readonly freeAt?: number;
    }
  /** The leader is new, and what the one before had sent may still arrive. */
  | { readonly kind: 'new_leader' }
  | { readonly kind: 'ordering_key'; readonly key: string; readonly heldBy: string }
  /** Tasks of the same tenant, type and class that go first. */
  | { readonly kind: 'behind'; readonly count: number; readonly priority: number }
  /** Enough tasks of the type are QUEUED for its workers: nothing more is handed out until they claim. */
  | { readonly kind: 'workers_busy'; readonly ready: number; readonly running: number };

/** Why a task is not running, most telling fact first; never empty. Costs O(tasks ahead of it). */
export function explain(task: LiveTask | undefined, now: number): WhyFact[] {
  if (task === undefined) return [{ kind: 'unknown' }];
  const { line, mode, attempt, status } = task;
  switch (mode) {
    case Mode.gone:
      return [{ kind: 'unknown' }];
    case Mode.running:
      return [{ kind: 'running', status, attempt }];
    case Mode.queued:
      return [{ kind: 'waiting_for_worker', ready: line.ready, running: line.running }];
    case Mode.queueing:
      return [{ kind: 'being_queued' }];
    case Mode.doomed:
    case Mode.ending:
      return [{ kind: 'ending' }];
    case Mode.delayed: {
      const due = {
        kind: 'due_later',
        dueAt: task.dueAt,
        retry: attempt > 0,
        delayed: line.delayed,
      } as const;
      return [due, ...pauses(task, now)];
    }
    case Mode.waiting:
    case Mode.carrying:
    case Mode.moved:
      return waiting(task, now);
    default:
      return mode satisfies never;
  }
}

function waiting(task: LiveTask, now: number): WhyFact[] {
  const facts: WhyFact[] = [...pauses(task, now), ...limits(task, now), ...newLeader(task), ...keys(task)];
  const { line, share, priority } = task;
  const count = task.spot === Spot.lane ? share.lane(task).ahead(task) : 0;
  if (count > 0) facts.push({ kind: 'behind', count, priority });
  const busy = { kind: 'workers_busy', ready: line.ready, running: line.running } as const;
  if (!line.windowOpen) facts.push(busy);
  return facts.length > 0 ? facts : [{ kind: 'behind', count, priority }];
}

const pauses = ({ share }: LiveTask, now: number): WhyFact[] =>
  [share.type, share.tenant, share].flatMap(({ pause }): WhyFact[] =>
    pause !== undefined && holdsAt(pause, now) ? [{ kind: 'paused', ...pause }] : [],
  );

const newLeader = ({ share, spot }: LiveTask): WhyFact[] =>
  [share.type, share.tenant, share].some(({ blocks }) => (blocks & Block.newLeader) !== 0) ||
  (spot === Spot.held && share.type.keysHeld)
    ? [{ kind: 'new_leader' }]
    : [];

const limits = ({ share }: LiveTask, now: number): WhyFact[] => [
  ...limitsOf(share.type, { concurrency: 'type_concurrency' }, now),
  ...limitsOf(share.tenant, { concurrency: 'tenant_concurrency', rate: 'tenant_rate' }, now),
  ...limitsOf(share, { concurrency: 'tenant_type_concurrency', rate: 'tenant_type_rate' }, now),
];

function limitsOf(
  { blocks, limit, bucket, promised }: Allowance,
  kinds: { readonly concurrency: LimitKind; readonly rate?: LimitKind },
  now: number,
): WhyFact[] {
  const facts: WhyFact[] = [];
  if ((blocks & Block.concurrency) !== 0)
    facts.push({ kind: 'limit', limit: kinds.concurrency, value: limit });
  if ((blocks & Block.rate) !== 0 && bucket !== undefined && kinds.rate !== undefined) {
    const freeAt = Math.max(now, bucket.readyAt(now, promised));
    facts.push({
      kind: 'limit',
      limit: kinds.rate,
      value: bucket.ratePerSecond,
      ...(Number.isFinite(freeAt) ? { freeAt } : {}),
    });
  }
  return facts;
}

function keys(task: LiveTask): WhyFact[] {
  const { rare, share, spot } = task;
  if (spot === Spot.ordered && rare?.orderingKey !== undefined) {
    const holder = share.gates.turnOf(task);
    if (holder !== undefined && holder !== task)
      return [{ kind: 'ordering_key', key: rare.orderingKey, heldBy: holder.id }];
  }
  return spot === Spot.held ? [{ kind: 'limit', limit: 'concurrency_key', value: share.type.keyLimit }] : [];
}
