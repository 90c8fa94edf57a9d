import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CoreBetween, type Happening, happenings } from '../../test/support/core-between.ts';
import type { Actor } from '../domain/events.ts';
import type { Priority } from '../domain/names.ts';
import { TERMINAL } from '../domain/task.ts';
import { DispatchCore } from './core.ts';

const rival: Actor = { kind: 'dispatcher', id: 'd2' };

/** One thing that happens, in the log, on the wire, or in the core. */
type Step =
  | Happening
  | {
      readonly do: 'ingest';
      readonly priority: number;
      readonly delayMs: number;
      readonly deadlineMs: number;
    }
  | {
      readonly do: 'reschedule';
      readonly task: number;
      readonly priority: Priority;
      readonly delayMs: number | null;
    }
  /** Another dispatcher queues the task. */
  | { readonly do: 'rival'; readonly task: number }
  | { readonly do: 'age'; readonly back: number }
  | { readonly do: 'phase'; readonly phase: 'following' | 'leading' };

const step: fc.Arbitrary<Step> = fc.oneof(
  ...happenings,
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constant('ingest' as const),
      priority: fc.integer({ min: 1, max: 4 }),
      delayMs: fc.constantFrom(0, 0, 100, 2_000),
      deadlineMs: fc.constantFrom(0, 0, 0, 3_000),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('reschedule' as const),
      task: fc.nat(),
      priority: fc.constantFrom<Priority[]>(1, 2, 3, 4),
      delayMs: fc.constantFrom(null, 50, 1_500),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rival' as const), task: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('age' as const), back: fc.constantFrom(0, 0, 5) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('phase' as const),
      phase: fc.constantFrom('following' as const, 'leading' as const, 'leading' as const),
    }),
  },
);

class Simulation {
  readonly #between: CoreBetween;
  #tasks = 0;

  constructor(windowMin: number) {
    const core = new DispatchCore({
      window: { min: windowMin, max: 1_000, ms: 500 },
      inlinePayloadBytes: 100,
      payloadCacheBytes: 300,
    });
    core.enter('leading');
    this.#between = new CoreBetween(core);
  }

  get core(): DispatchCore {
    return this.#between.core;
  }

  get log() {
    return this.#between.log;
  }

  run(step: Step): void {
    switch (step.do) {
      case 'ingest':
        this.#tasks += 1;
        this.log.ingest(this.#tasks, {
          priority: step.priority,
          policy: { maxRetries: 1, backoff: { kind: 'fixed', baseMs: 300 }, jitter: 'none' },
          ...(step.delayMs === 0 ? {} : { runAt: this.log.now + step.delayMs }),
          ...(step.deadlineMs === 0 ? {} : { deadlineAt: this.log.now + step.deadlineMs }),
        });
        return;
      case 'reschedule': {
        const { priority, delayMs } = step;
        const runAt = delayMs === null ? null : this.log.now + delayMs;
        this.#to(step.task, (id) => this.log.reschedule(id, { priority, runAt }));
        return;
      }
      case 'rival':
        this.#to(step.task, (id) => this.log.do(id, rival, { kind: 'queue', inlinePayload: true }));
        return;
      case 'age':
        this.core.age(this.core.position - step.back);
        return;
      case 'phase':
        this.core.enter(step.phase);
        return;
      default:
        this.#between.run(step);
    }
  }

  /** Lets everything come to rest: nothing new from outside, all outcomes heard. */
  rest(): void {
    this.core.enter('leading');
    for (let round = 0; round < 50; round++) this.#between.settle();
  }

  #to(task: number, happen: (id: string) => unknown): void {
    const id = this.#between.pick(task);
    if (id !== undefined) this.#between.attempt(() => happen(id));
  }
}

const everyStatus = (simulation: Simulation) => [...simulation.log.states].map(({ status }) => status);

describe('the core in a random world', () => {
  it('never has two appends under way for a task, forgets none, and counts as the log does', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 120 }), (steps) => {
        const simulation = new Simulation(1_000);
        for (const each of steps) simulation.run(each);
        simulation.rest();
        const statuses = everyStatus(simulation);
        expect(statuses.filter((status) => isWaitingForUs(status))).toEqual([]);
        expect(simulation.core.size).toBe(statuses.filter((status) => !TERMINAL.has(status)).length);
        expect(simulation.core.stats()['transcode'] ?? empty).toMatchObject({
          waiting: 0,
          delayed: 0,
          intents: 0,
          ready: statuses.filter((status) => status === 'QUEUED').length,
          running: statuses.filter((status) => status === 'CLAIMED' || status === 'PROCESSING').length,
        });
      }),
      { numRuns: 1_500 },
    );
  });

  it('keeps the ready window and leaves none behind it', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 120 }), (steps) => {
        const simulation = new Simulation(2);
        for (const each of steps) {
          // A rival, or an append stored unheard, may put more into the window than the core would.
          if (each.do === 'rival') continue;
          if (each.do === 'outcome' && each.how === 'unheard') continue;
          simulation.run(each);
          const line = simulation.core.stats()['transcode'];
          if (line !== undefined) expect(line.ready + line.intents).toBeLessThanOrEqual(2);
        }
        simulation.rest();
        const statuses = everyStatus(simulation);
        const left = statuses.filter((status) => isWaitingForUs(status)).length;
        const ready = statuses.filter((status) => status === 'QUEUED').length;
        expect(left === 0 || ready >= 2, `${left} left behind with ${ready} ready`).toBe(true);
      }),
      { numRuns: 1_500 },
    );
  });

  it('decides the same from the same inputs', () => {
    fc.assert(
      fc.property(fc.array(step, { minLength: 1, maxLength: 80 }), (steps) => {
        const histories = [0, 1].map(() => {
          const simulation = new Simulation(3);
          for (const each of steps) simulation.run(each);
          simulation.rest();
          return simulation.log.events;
        });
        expect(histories[0]).toEqual(histories[1]);
      }),
      { numRuns: 100 },
    );
  });
});

const empty = { waiting: 0, delayed: 0, intents: 0, ready: 0, running: 0 };
const isWaitingForUs = (status: string): boolean =>
  ['INGESTED', 'FAILED', 'RETRY_CLAIMED', 'REPLAYED'].includes(status);
