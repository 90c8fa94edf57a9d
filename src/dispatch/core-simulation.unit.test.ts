import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { FencedLog, taskIdOf } from '../../test/support/fenced-log.ts';
import type { Command } from '../domain/commands.ts';
import { decide } from '../domain/decide.ts';
import { TaskledgerError } from '../domain/errors.ts';
import type { Actor } from '../domain/events.ts';
import type { Priority } from '../domain/names.ts';
import { deadLetterReason, TERMINAL } from '../domain/task.ts';
import { DispatchCore } from './core.ts';
import type { Decision } from './decisions.ts';
import { stateOf } from './live-task.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const actor: Actor = { kind: 'dispatcher', id: 'd1' };
const rival: Actor = { kind: 'dispatcher', id: 'd2' };

/** One thing that happens, in the log, on the wire, or in the core. Numbers are taken modulo what there is. */
type Step =
  | {
      readonly do: 'ingest';
      readonly priority: number;
      readonly delayMs: number;
      readonly deadlineMs: number;
    }
  | { readonly do: 'move'; readonly task: number; readonly move: (typeof moves)[number] }
  | {
      readonly do: 'reschedule';
      readonly task: number;
      readonly priority: Priority;
      readonly delayMs: number | null;
    }
  | { readonly do: 'show'; readonly events: number }
  | { readonly do: 'decide' }
  | { readonly do: 'outcome'; readonly intent: number; readonly how: 'normal' | 'unheard' | 'unsent' }
  | { readonly do: 'time'; readonly ms: number }
  | { readonly do: 'age'; readonly back: number }
  | { readonly do: 'phase'; readonly phase: 'following' | 'leading' };
const moves = [
  'claim',
  'start',
  'complete',
  'fail',
  'lose',
  'requestCancel',
  'replay',
  'rival',
  'carry',
] as const;

const step: fc.Arbitrary<Step> = fc.oneof(
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
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('move' as const),
      task: fc.nat(),
      move: fc.constantFrom('claim' as const, 'start' as const, 'claim' as const, 'start' as const, ...moves),
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
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant('show' as const), events: fc.integer({ min: 1, max: 5 }) }),
  },
  { weight: 4, arbitrary: fc.record({ do: fc.constant('decide' as const) }) },
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant('outcome' as const),
      intent: fc.nat(),
      how: fc.constantFrom(
        'normal' as const,
        'normal' as const,
        'normal' as const,
        'unheard' as const,
        'unsent' as const,
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('time' as const), ms: fc.constantFrom(1, 100, 700, 5_000) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('age' as const), back: fc.constantFrom(0, 0, 5) }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('phase' as const),
      phase: fc.constantFrom('following' as const, 'leading' as const, 'leading' as const),
    }),
  },
);

/** The core between a log that others write to as well and appends whose outcomes come late, or never. */
class Simulation {
  readonly log = new FencedLog(NOW);
  readonly core: DispatchCore;
  readonly intents: Decision[] = [];
  #shown = 0;
  #tasks = 0;

  constructor(windowMin: number) {
    this.core = new DispatchCore({
      window: { min: windowMin, max: 1_000, ms: 500 },
      inlinePayloadBytes: 100,
      payloadCacheBytes: 300,
    });
    this.core.enter('leading');
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
      case 'move':
        if (this.#tasks > 0) this.#move(taskIdOf(1 + (step.task % this.#tasks)), step.move);
        return;
      case 'reschedule': {
        const { priority, delayMs } = step;
        const runAt = delayMs === null ? null : this.log.now + delayMs;
        if (this.#tasks > 0)
          this.#try(() => this.log.reschedule(taskIdOf(1 + (step.task % this.#tasks)), { priority, runAt }));
        return;
      }
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
      case 'age':
        this.core.age(this.core.position - step.back);
        return;
      case 'phase':
        this.core.enter(step.phase);
        return;
      default:
        step satisfies never;
    }
  }

  show(events = this.log.events.length): void {
    for (const recorded of this.log.events.slice(this.#shown, this.#shown + events))
      this.core.observe(recorded);
    this.#shown = Math.min(this.log.events.length, this.#shown + events);
  }

  decide(): void {
    const made: Decision[] = [];
    this.core.decide(made, this.log.now);
    for (const decision of made) {
      const before = this.intents.find(({ task, seq }) => task === decision.task && seq === decision.seq);
      expect(before, `two appends under way for ${decision.task.id} at ${decision.seq}`).toBeUndefined();
      this.intents.push(decision);
    }
  }

  /** What the performer does, and what may become of it. */
  outcome(index: number, how: 'normal' | 'unheard' | 'unsent'): void {
    const [intent] = this.intents.splice(index % Math.max(1, this.intents.length), 1);
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
    const carry = intent.kind === 'carry' && truth !== undefined && truth.seq === seq;
    const state = carry ? truth : stateOf(task, null);
    const kind = carry
      ? 'carry'
      : state.cancelRequested
        ? 'cancel'
        : deadLetterReason(state, this.log.now)
          ? 'dead_letter'
          : intent.kind;
    const decided = decide(state, {
      kind,
      inlinePayload: true,
      eventId: taskIdOf(0xd000_0000 + this.log.events.length),
      at: this.log.now,
      actor,
    } as Command);
    if (!decided.ok) throw new Error(`the core asked for ${kind} of ${task.id}: ${decided.error.message}`);
    const outcome = this.log.append(decided.value, seq);
    if (how === 'unheard') this.core.unresolved(task, this.log.now + 500);
    else if (outcome.status === 'conflict') this.core.refused(task, seq, this.log.now);
  }

  /** Lets everything come to rest: nothing new from outside, all outcomes normal. */
  rest(): void {
    this.core.enter('leading');
    for (let round = 0; round < 50; round++) {
      this.log.now += 500;
      this.core.advance(this.log.now);
      this.show();
      this.decide();
      while (this.intents.length > 0) this.outcome(0, 'normal');
      this.show();
    }
  }

  #move(id: string, move: (typeof moves)[number]): void {
    this.#try(() => {
      if (move === 'rival') this.log.do(id, rival, { kind: 'queue', inlinePayload: true });
      else if (move === 'carry') this.log.do(id, rival, { kind: 'carry' });
      else this.log[move](id);
    });
  }

  #try(happen: () => unknown): void {
    try {
      happen();
    } catch (error) {
      // The rules refuse what makes no sense now: then it does not happen.
      if (!(error instanceof TaskledgerError)) throw error;
    }
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
          if (each.do === 'move' && each.move === 'rival') continue;
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
