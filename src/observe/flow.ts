/** What the leading dispatcher says of one line (a type, or a version of one). Work is `ready` when a worker could claim it now. */
export interface LineFlow {
  readonly ready: number;
  /** Claims seen by this leader so far: any change is progress. */
  readonly claimed: number;
}

export interface FlowNotice {
  /** Waiting tasks by type. */
  readonly waiting: Readonly<Record<string, number>>;
  readonly flow?: Readonly<Record<string, LineFlow>>;
}

/** A worker as the registry shows it. */
export interface WorkerSight {
  readonly types: readonly string[];
  /** Least and greatest version by type, of the types that have others than version 1. */
  readonly versions?: Readonly<Record<string, readonly [number, number]>>;
  readonly concurrency: number;
  readonly active: readonly unknown[];
  readonly degraded?: string;
}

/** Work that could be claimed and is not for so long is stuck; so is everything when no dispatcher speaks for so long. */
export const STALL_MS = 15_000;

interface Line {
  ready: number;
  claimed: number;
  /** When it last made progress, or had nothing to do. */
  since: number;
}

/**
 * Whether work flows, from what dispatchers announce. Times are monotonic ms. What waits for a limit, a pause or its
 * time is not ready, and holds nothing up. Nothing is said before the first announcement.
 */
export class Flow {
  readonly #lines = new Map<string, Line>();
  #waiting = 0;
  #heardAt: number | undefined;

  heard({ waiting, flow = {} }: FlowNotice, now: number): void {
    this.#heardAt = now;
    this.#waiting = Object.values(waiting).reduce((sum, count) => sum + count, 0);
    for (const key of this.#lines.keys()) if (flow[key] === undefined) this.#lines.delete(key);
    for (const [key, { ready, claimed }] of Object.entries(flow)) {
      const known = this.#lines.get(key);
      const since = known === undefined || ready === 0 || known.claimed !== claimed ? now : known.since;
      this.#lines.set(key, { ready, claimed, since });
    }
  }

  /** Why nothing is dispatched at all. */
  silence(now: number): string | undefined {
    if (this.#heardAt === undefined || this.#waiting === 0 || now - this.#heardAt < STALL_MS)
      return undefined;
    return `no dispatcher has spoken for ${seconds(now - this.#heardAt)} while ${this.#waiting} tasks wait`;
  }

  /** Lines whose ready work nobody claims. Busy or missing workers may be the reason: see `blame`. */
  stalled(now: number): { readonly line: string; readonly ready: number; readonly forMs: number }[] {
    // A silent dispatcher says nothing of claims.
    if (this.#heardAt === undefined || now - this.#heardAt >= STALL_MS) return [];
    return [...this.#lines].flatMap(([line, { ready, since }]) =>
      ready > 0 && now - since >= STALL_MS ? [{ line, ready, forMs: now - since }] : [],
    );
  }
}

/** What is wrong with a stalled line, or undefined when its workers are all busy or there are none. */
export function blame(
  { line, ready, forMs }: ReturnType<Flow['stalled']>[number],
  workers: readonly WorkerSight[],
): string | undefined {
  const own = workers.filter((worker) => serves(worker, line));
  const degraded = own.filter((worker) => worker.degraded !== undefined);
  const idle = own.filter(
    (worker) => worker.degraded === undefined && worker.active.length < worker.concurrency,
  );
  const what = `${ready} tasks of ${line} are ready and none was claimed for ${seconds(forMs)}`;
  if (idle.length > 0) return `${what}, though ${idle.length} of ${own.length} workers have room`;
  if (own.length > 0 && degraded.length === own.length)
    return `${what}: its ${own.length} workers take no work (${degraded[0]?.degraded})`;
  return undefined;
}

/** A line is a type, with `@<version>` when that is not 1. */
export function serves({ types, versions }: Pick<WorkerSight, 'types' | 'versions'>, line: string): boolean {
  const [type = line, version = '1'] = line.split('@');
  const [least, greatest] = versions?.[type] ?? [1, 1];
  return types.includes(type) && Number(version) >= least && Number(version) <= greatest;
}

const seconds = (ms: number): string => `${Math.round(ms / 1_000)} s`;
