import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FencedLog, taskIdOf } from '../../test/support/fenced-log.ts';
import type { Command } from '../domain/commands.ts';
import { decide } from '../domain/decide.ts';
import { TaskledgerError } from '../domain/errors.ts';
import type { Actor } from '../domain/events.ts';
import { RUNNING, type TaskState, TERMINAL } from '../domain/task.ts';
import { DispatchCore } from './core.ts';
import type { Decision } from './decisions.ts';
import { stateOf } from './live-task.ts';

/** Everything that may hold a task back, in a random world with failovers: what is promised exactly holds at every moment. */

const NOW = Date.parse('2026-01-01T00:00:00Z');
const actor: Actor = { kind: 'dispatcher', id: 'd1' };
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
const bounds: readonly { readonly tenant?: string; readonly type?: string; readonly max: number }[] = [
  { tenant: 'acme', max: 3 },
  { tenant: 'acme', type: 'probe', max: 1 },
  { tenant: 'zeta', type: 'transcode', max: 2 },
  { type: 'transcode', max: 5 },
];

const moves = ['claim', 'start', 'complete', 'fail', 'lose', 'requestCancel', 'replay', 'carry'] as const;
const step = fc.oneof(
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
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('move' as const),
      task: fc.nat(),
      move: fc.constantFrom('claim' as const, 'start' as const, 'claim' as const, 'start' as const, ...moves),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('show' as const), events: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constant('decide' as const) }) },
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('outcome' as const),
      intent: fc.nat(),
      how: fc.constantFrom('stored' as const, 'stored' as const, 'unheard' as const, 'unsent' as const),
    }),
  },
  {
    weight: 3,
    arbitrary: fc.record({ do: fc.constant('time' as const), ms: fc.constantFrom(1, 100, 700, 5_000) }),
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
  readonly log = new FencedLog(NOW);
  core = newCore();
  readonly #paused = new Map<string, { tenant?: string | undefined; type?: string | undefined }>();
  #intents: Decision[] = [];
  #shown = 0;
  #tasks = 0;

  constructor() {
    this.core.enter('leading');
  }

  run(step: Step): void {
    switch (step.do) {
      case 'ingest': {
        this.#tasks += 1;
        const { tenant, type, priority, delayMs, key, keyName } = step;
        this.log.ingest(this.#tasks, {
          tenant,
          type,
          priority,
          policy: { maxRetries: 1, backoff: { kind: 'fixed', baseMs: 300 }, jitter: 'none' },
          ...(delayMs === 0 ? {} : { runAt: this.log.now + delayMs }),
          ...(key === 'ordered' || key === 'both' ? { orderingKey: keyName } : {}),
          ...(key === 'shared' || key === 'both' ? { concurrencyKey: keyName } : {}),
        });
        return;
      }
      case 'move':
        if (this.#tasks > 0) this.#move(taskIdOf(1 + (step.task % this.#tasks)), step.move);
        return;
      case 'show':
        this.show(step.events);
        return;
      case 'decide':
        this.decide();
        return;
      case 'outcome':
        this.outcome(step.intent, step.how);
        return;
      case 'time':
        this.log.now += step.ms;
        this.core.advance(this.log.now);
        return;
      case 'pause':
        this.pause(step);
        return;
      case 'failover':
        this.failover();
        return;
      default:
        step satisfies never;
    }
  }

  show(events = this.log.events.length): void {
    const upTo = Math.min(this.log.events.length, this.#shown + events);
    for (const recorded of this.log.events.slice(this.#shown, upTo)) this.core.observe(recorded);
    this.#shown = upTo;
  }

  decide(): void {
    const made: Decision[] = [];
    this.core.decide(made, this.log.now);
    for (const decision of made) {
      if (decision.kind === 'queue') {
        const { tenant, line } = decision.task;
        const held = [...this.#paused.values()].find((scope) => covers(scope, { tenant, type: line.type }));
        expect(held, `${decision.task.id} is queued although it is paused`).toBeUndefined();
      }
      this.#intents.push(decision);
    }
  }

  /** `unheard`: it is stored, and nobody heard the answer. `unsent`: it is not, and nobody knows. */
  outcome(index: number, how: 'stored' | 'unheard' | 'unsent'): void {
    const [intent] = this.#intents.splice(index % Math.max(1, this.#intents.length), 1);
    if (intent === undefined) return;
    const { task, seq } = intent;
    if (how === 'unsent') {
      this.core.unresolved(task, this.log.now + 500);
      return;
    }
    const truth = this.log.state(task.id);
    if (!task.known && truth?.seq === seq && task.seq === seq && !this.core.learn(task, truth, this.log.now))
      return;
    if (task.seq !== seq || !task.known) {
      this.core.refused(task, seq, this.log.now);
      return;
    }
    const state = stateOf(task, null);
    const kind = state.cancelRequested ? 'cancel' : intent.kind;
    const decided = decide(state, {
      kind,
      inlinePayload: true,
      eventId: taskIdOf(0xd000_0000 + this.log.events.length),
      at: this.log.now,
      actor,
    } as Command);
    if (!decided.ok) throw decided.error;
    const outcome = this.log.append(decided.value, seq);
    if (how === 'unheard') this.core.unresolved(task, this.log.now + 500);
    else if (outcome.status === 'conflict') this.core.refused(task, seq, this.log.now);
  }

  pause({
    tenant,
    type,
    paused,
  }: {
    tenant?: string | undefined;
    type?: string | undefined;
    paused: boolean;
  }): void {
    if (tenant === undefined && type === undefined) return;
    const scope = { tenant, type };
    const pause = { paused: true, reason: 'r', actor: 'a', at: createdAt } as const;
    this.core.terms.putPause(scope, paused ? pause : undefined, this.log.now);
    if (paused) this.#paused.set(JSON.stringify(scope), scope);
    else this.#paused.delete(JSON.stringify(scope));
  }

  resumeAll(): void {
    for (const scope of this.#paused.values()) this.pause({ ...scope, paused: false });
  }

  /** Another leader, from the log alone. What the one before had under way was not stored, or is in the log. */
  failover(): void {
    this.#intents = [];
    this.core = newCore();
    for (const scope of this.#paused.values()) this.pause({ ...scope, paused: true });
    this.#shown = 0;
    this.show();
    this.core.advance(this.log.now);
    this.core.enter('leading');
  }

  /** Nothing is paused any more and workers do everything well, until nothing is left. */
  rest(): void {
    this.resumeAll();
    for (let round = 0; round < 200 && this.open().length > 0; round++) {
      this.log.now += 500;
      this.core.advance(this.log.now);
      this.show();
      this.decide();
      while (this.#intents.length > 0) this.outcome(0, 'stored');
      this.show();
      for (const { id } of this.open())
        for (const move of ['claim', 'start', 'complete'] as const) this.#move(id, move);
      this.check();
    }
  }

  open(): TaskState[] {
    return [...this.log.states].filter(({ status }) => !TERMINAL.has(status));
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

  #move(id: string, move: (typeof moves)[number]): void {
    try {
      if (move === 'carry') this.log.do(id, actor, { kind: 'carry' });
      else this.log[move](id);
    } catch (error) {
      // The rules refuse what makes no sense now: then it does not happen.
      if (!(error instanceof TaskledgerError)) throw error;
    }
  }
}

const covers = (
  scope: { readonly tenant?: string | undefined; readonly type?: string | undefined },
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
