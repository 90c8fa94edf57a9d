import { DispatchCore } from '../../src/dispatch/core.ts';
import type { Decision } from '../../src/dispatch/decisions.ts';
import { KeyHeap } from '../../src/dispatch/key-heap.ts';
import type { Recorded, TaskEvent } from '../../src/domain/events.ts';
import { taskIdOf } from '../support/fenced-log.ts';
import { randomOf } from '../support/random-lives.ts';

const START = Date.parse('2026-01-01T00:00:00Z');
const createdAt = '2026-01-01T00:00:00.000Z';

export interface SimulatedTask {
  readonly tenant: string;
  readonly type?: string;
  readonly priority?: number;
  readonly orderingKey?: string;
  readonly concurrencyKey?: string;
}

export interface Started {
  readonly n: number;
  readonly tenant: string;
  readonly priority: number;
  readonly key: string | undefined;
  /** Ms since 1970. */
  readonly at: number;
}

interface WorldOptions {
  readonly workers: number;
  /** How long a task runs: a number from 0 to 1 decides. */
  readonly runMs: (dice: number) => number;
  readonly seed?: number;
  readonly window?: number;
}

/** The core with workers on a virtual clock: every append is stored at once, every worker takes the oldest work item. */
export class SimulatedWorld {
  readonly core: DispatchCore;
  readonly starts: Started[] = [];
  now = START;
  readonly #options: WorldOptions;
  readonly #dice: () => number;
  readonly #ends = new KeyHeap<number>();
  readonly #tasks: SimulatedTask[] = [];
  readonly #running = new Set<number>();
  #ready: number[] = [];
  #free: number;
  #seq = 0;
  decided = 0;
  /** Ms of real time spent in the core's `decide`. */
  decidingMs = 0;
  /** Called at every start and end, with the tasks that hold slots. */
  onChange: ((running: ReadonlySet<number>, task: (n: number) => SimulatedTask) => void) | undefined;

  constructor(options: WorldOptions) {
    this.#options = options;
    this.#dice = randomOf(options.seed ?? 1);
    this.#free = options.workers;
    const window = options.window ?? Math.max(1, options.workers);
    this.core = new DispatchCore({
      window: { min: window, max: window, ms: 1 },
      inlinePayloadBytes: 100,
      payloadCacheBytes: 0,
    });
    this.core.enter('leading');
  }

  tenant(name: string, settings: object): void {
    this.core.terms.putTenant(name, { name, createdAt, ...settings }, this.now);
  }

  submit(task: SimulatedTask): number {
    const n = this.#tasks.push(task) - 1;
    const { orderingKey, concurrencyKey } = task;
    this.#observe(n, 'INGESTED', {
      payload: null,
      ...(orderingKey === undefined ? {} : { orderingKey }),
      ...(concurrencyKey === undefined ? {} : { concurrencyKey }),
    });
    return n;
  }

  /** Until `done` says so or nothing is left to happen. */
  run(done: () => boolean = () => false): void {
    for (;;) {
      this.#decide();
      this.#startReady();
      if (done()) return;
      const next = Math.min(this.#ends.topKey(), this.core.nextWakeAt());
      if (next === Number.POSITIVE_INFINITY) return;
      this.now = Math.max(this.now, next);
      this.core.advance(this.now);
      while (this.#ends.topKey() <= this.now) this.#end(this.#ends.pop() as number);
    }
  }

  #decide(): void {
    const made: Decision[] = [];
    const before = performance.now();
    this.core.decide(made, this.now);
    this.decidingMs += performance.now() - before;
    for (const { kind, task } of made) {
      if (kind !== 'queue') continue;
      this.decided += 1;
      const n = Number.parseInt(task.id.slice(-12), 16);
      this.#running.add(n);
      this.#observe(n, 'QUEUED', {
        facts: { submittedAt: this.now, attemptsBefore: 0, lost: 0 },
        payload: null,
      });
      this.#ready.push(n);
    }
    if (made.length > 0) this.#changed();
  }

  #startReady(): void {
    const taken = this.#ready.splice(0, this.#free);
    for (const n of taken) {
      this.#free -= 1;
      const { tenant, priority = 2, orderingKey, concurrencyKey } = this.#task(n);
      this.starts.push({ n, tenant, priority, key: orderingKey ?? concurrencyKey, at: this.now });
      this.#observe(n, 'CLAIMED', {});
      this.#ends.push(this.now + this.#options.runMs(this.#dice()), n);
    }
    if (taken.length > 0) this.#decide();
  }

  #end(n: number): void {
    this.#free += 1;
    this.#running.delete(n);
    this.#observe(n, 'COMPLETED', {});
    this.#changed();
  }

  #changed(): void {
    this.onChange?.(this.#running, (n) => this.#task(n));
  }

  #task(n: number): SimulatedTask {
    const task = this.#tasks[n];
    if (task === undefined) throw new Error(`no task ${n}`);
    return task;
  }

  #observe(n: number, kind: TaskEvent['kind'], data: object): void {
    const { tenant, type = 'transcode', priority = 2 } = this.#task(n);
    this.#seq += 1;
    const event = {
      v: 1,
      id: taskIdOf(n),
      kind,
      taskId: taskIdOf(n),
      tenant,
      type,
      from: null,
      round: 1,
      attempt: kind === 'INGESTED' || kind === 'QUEUED' ? 0 : 1,
      priority,
      at: this.now,
      actor: { kind: 'dispatcher', id: 'simulated' },
      data,
    } as TaskEvent;
    this.core.observe({ seq: this.#seq, storedAt: this.now, event } satisfies Recorded);
  }
}
