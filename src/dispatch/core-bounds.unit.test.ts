import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CoreBetween, happenings } from '../../test/support/core-between.ts';
import { NOW } from '../../test/support/core-world.ts';
import { RUNNING, type TaskState, TERMINAL } from '../domain/task.ts';
import { DispatchCore } from './core.ts';

/** Everything that may hold a task back, in a random world with failovers: what is promised exactly holds at every moment. */

const TENANTS = ['acme', 'zeta', 'omega'] as const;
const TYPES = ['transcode', 'probe'] as const;
const createdAt = '2026-01-01T00:00:00.000Z';

const tenantSettings = {
  acme: { limits: { concurrency: 3 }, types: { probe: { concurrency: 1 } } },
  zeta: { weight: 3, types: { transcode: { concurrency: 2 } } },
  omega: {},
} as const;
const typeSettings = {
  transcode: { concurrency: 5, concurrencyKeyLimit: 2 },
  probe: {},
} as const;
/** What the settings above allow at one time. */
const bounds: readonly (Scope & { readonly max: number })[] = [
  { tenant: 'acme', max: 3 },
  { tenant: 'acme', type: 'probe', max: 1 },
  { tenant: 'zeta', type: 'transcode', max: 2 },
  { type: 'transcode', max: 5 },
];

/** One thing that happens, to a task, on the wire, or to the dispatchers. */
const step = fc.oneof(
  ...happenings,
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('ingest' as const),
      tenant: fc.constantFrom(...TENANTS),
      type: fc.constantFrom(...TYPES),
      priority: fc.constantFrom(1 as const, 2 as const, 3 as const, 4 as const),
      delayMs: fc.constantFrom(0, 0, 0, 100, 2_000),
      key: fc.constantFrom('none', 'none', 'ordered', 'shared', 'both'),
      keyName: fc.constantFrom('k1', 'k2'),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('pause' as const),
      tenant: fc.constantFrom(undefined, ...TENANTS),
      type: fc.constantFrom(undefined, ...TYPES),
      paused: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('failover' as const) }) },
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
type Scope = { readonly tenant?: string | undefined; readonly type?: string | undefined };

const newCore = (): DispatchCore => {
  const core = new DispatchCore({
    window: { min: 1_000, max: 1_000, ms: 500 },
    inlinePayloadBytes: 100,
    payloadCacheBytes: 300,
  });
  for (const tenant of TENANTS)
    core.terms.putTenant(tenant, { name: tenant, createdAt, ...tenantSettings[tenant] }, NOW);
  for (const type of TYPES) core.terms.putType(type, { type, ...typeSettings[type] }, NOW);
  return core;
};

class BoundedWorld {
  readonly #between: CoreBetween;
  readonly #paused = new Map<string, Scope>();
  #tasks = 0;

  constructor() {
    const core = newCore();
    core.enter('leading');
    this.#between = new CoreBetween(core);
  }

  run(step: Step): void {
    const { log } = this.#between;
    switch (step.do) {
      case 'ingest': {
        this.#tasks += 1;
        const { tenant, type, priority, delayMs, key, keyName } = step;
        log.ingest(this.#tasks, {
          tenant,
          type,
          priority,
          policy: { maxRetries: 1, backoff: { kind: 'fixed', baseMs: 300 }, jitter: 'none' },
          ...(delayMs === 0 ? {} : { runAt: log.now + delayMs }),
          ...(key === 'ordered' || key === 'both' ? { orderingKey: keyName } : {}),
          ...(key === 'shared' || key === 'both' ? { concurrencyKey: keyName } : {}),
        });
        return;
      }
      case 'decide':
        this.#decide();
        return;
      case 'pause':
        this.#pause(this.#between.core, step);
        return;
      case 'failover':
        this.#failover();
        return;
      default:
        this.#between.run(step);
    }
  }

  #decide(): void {
    for (const { kind, task } of this.#between.decide()) {
      if (kind !== 'queue') continue;
      const { tenant, line } = task;
      const held = [...this.#paused.values()].find((scope) => covers(scope, { tenant, type: line.type }));
      expect(held, `${task.id} is queued although it is paused`).toBeUndefined();
    }
  }

  #pause(core: DispatchCore, { tenant, type, paused }: Scope & { readonly paused: boolean }): void {
    if (tenant === undefined && type === undefined) return;
    const scope = { tenant, type };
    const pause = { paused: true, reason: 'r', actor: 'a', at: createdAt } as const;
    core.terms.putPause(scope, paused ? pause : undefined, this.#between.log.now);
    if (paused) this.#paused.set(JSON.stringify(scope), scope);
    else this.#paused.delete(JSON.stringify(scope));
  }

  #failover(): void {
    const core = newCore();
    for (const scope of this.#paused.values()) this.#pause(core, { ...scope, paused: true });
    this.#between.replace(core);
  }

  /** Nothing is paused any more and workers do everything well, until nothing is left. */
  rest(): void {
    for (const scope of this.#paused.values()) this.#pause(this.#between.core, { ...scope, paused: false });
    for (let round = 0; round < 200 && this.open().length > 0; round++) {
      this.#between.settle();
      for (const { id } of this.open())
        for (const move of ['claim', 'start', 'complete'] as const) this.#between.move(id, move);
      this.check();
    }
  }

  open(): TaskState[] {
    return [...this.#between.log.states].filter(({ status }) => !TERMINAL.has(status));
  }

  check(): void {
    const held = this.open().filter(({ status }) => status === 'QUEUED' || RUNNING.has(status));
    for (const { tenant, type, max } of bounds) {
      const inScope = held.filter((task) => covers({ tenant, type }, task));
      expect(inScope.length, `${tenant ?? 'all'}/${type ?? 'all'}`).toBeLessThanOrEqual(max);
    }
    for (const task of held) {
      const { concurrencyKey, orderingKey, orderSeq = 0 } = task.facts;
      const beside = this.open().filter((other) => other.tenant === task.tenant && other.type === task.type);
      if (concurrencyKey !== undefined) {
        const shared = beside.filter(
          (other) => held.includes(other) && other.facts.concurrencyKey === concurrencyKey,
        );
        expect(shared.length, concurrencyKey).toBeLessThanOrEqual(task.type === 'transcode' ? 2 : 1);
      }
      if (orderingKey === undefined) continue;
      const before = beside.filter(
        ({ facts }) => facts.orderingKey === orderingKey && (facts.orderSeq ?? 0) < orderSeq,
      );
      expect(before, `${task.id} overtakes`).toEqual([]);
    }
  }
}

const covers = (
  scope: Scope,
  { tenant, type }: { readonly tenant: string; readonly type: string },
): boolean =>
  (scope.tenant === undefined || scope.tenant === tenant) &&
  (scope.type === undefined || scope.type === type);

describe('the core among limits, keys, pauses and failovers', () => {
  it('exceeds no limit, breaks no order, queues nothing that is paused, and leaves nothing behind', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 300, size: 'max' }), (steps) => {
        const world = new BoundedWorld();
        for (const each of steps) {
          world.run(each);
          world.check();
        }
        world.rest();
        expect(world.open().map(({ id, status }) => `${id} ${status}`)).toEqual([]);
      }),
      { numRuns: 200 },
    );
  });
});
