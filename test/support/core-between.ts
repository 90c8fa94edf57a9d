import fc from 'fast-check';
import { expect } from 'vitest';
import type { DispatchCore } from '../../src/dispatch/core.ts';
import type { Decision } from '../../src/dispatch/decisions.ts';
import { stateOf } from '../../src/dispatch/live-task.ts';
import type { Command } from '../../src/domain/commands.ts';
import { decide } from '../../src/domain/decide.ts';
import { TaskledgerError } from '../../src/domain/errors.ts';
import { deadLetterReason, type TaskState } from '../../src/domain/task.ts';
import { dispatcher, NOW } from './core-world.ts';
import { FencedLog, taskIdOf } from './fenced-log.ts';

const MOVES = ['claim', 'start', 'complete', 'fail', 'lose', 'requestCancel', 'replay', 'carry'] as const;

/**
 * What happens around any core. Numbers are taken modulo what there is.
 *
 * An outcome is `stored`; `unheard`: stored, and nobody heard the answer; or `unsent`: not stored, and nobody knows.
 */
export type Happening =
  | { readonly do: 'move'; readonly task: number; readonly move: (typeof MOVES)[number] }
  | { readonly do: 'show'; readonly events: number }
  | { readonly do: 'decide' }
  | { readonly do: 'outcome'; readonly intent: number; readonly how: 'stored' | 'unheard' | 'unsent' }
  | { readonly do: 'time'; readonly ms: number };

/** Happenings in the proportion in which they matter, to be mixed with a world's own. */
export const happenings: readonly fc.WeightedArbitrary<Happening>[] = [
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('move' as const),
      task: fc.nat(),
      move: fc.constantFrom('claim' as const, 'start' as const, 'claim' as const, 'start' as const, ...MOVES),
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
      how: fc.constantFrom(
        'stored' as const,
        'stored' as const,
        'stored' as const,
        'unheard' as const,
        'unsent' as const,
      ),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('time' as const), ms: fc.constantFrom(1, 100, 700, 5_000) }),
  },
];

/** A core between a log that others write to as well and appends whose outcomes come late, or never. */
export class CoreBetween {
  readonly log = new FencedLog(NOW);
  core: DispatchCore;
  #intents: Decision[] = [];
  #shown = 0;

  constructor(core: DispatchCore) {
    this.core = core;
  }

  run(happening: Happening): void {
    switch (happening.do) {
      case 'move':
        this.move(happening.task, happening.move);
        return;
      case 'show':
        this.show(happening.events);
        return;
      case 'decide':
        this.decide();
        return;
      case 'outcome':
        this.#outcome(happening.intent, happening.how);
        return;
      case 'time':
        this.pass(happening.ms);
        return;
      default:
        happening satisfies never;
    }
  }

  show(events = this.log.events.length): void {
    const upTo = Math.min(this.log.events.length, this.#shown + events);
    for (const recorded of this.log.events.slice(this.#shown, upTo)) this.core.observe(recorded);
    this.#shown = upTo;
  }

  pass(ms: number): void {
    this.log.now += ms;
    this.core.advance(this.log.now);
  }

  /** Whatever the rules refuse because it makes no sense now does not happen. */
  attempt(happen: () => unknown): void {
    try {
      happen();
    } catch (error) {
      if (!(error instanceof TaskledgerError)) throw error;
    }
  }

  /** The id of a task that there is, or undefined while there is none. */
  pick(task: number): string | undefined {
    const states = [...this.log.states];
    return states[task % Math.max(1, states.length)]?.id;
  }

  move(task: number | string, move: (typeof MOVES)[number]): void {
    const id = typeof task === 'string' ? task : this.pick(task);
    if (id === undefined) return;
    this.attempt(() =>
      move === 'carry' ? this.log.do(id, dispatcher, { kind: 'carry' }) : this.log[move](id),
    );
  }

  decide(): readonly Decision[] {
    const made: Decision[] = [];
    this.core.decide(made, this.log.now);
    for (const decision of made) {
      const before = this.#intents.find(({ task, seq }) => task === decision.task && seq === decision.seq);
      expect(before, `two appends under way for ${decision.task.id} at ${decision.seq}`).toBeUndefined();
      this.#intents.push(decision);
    }
    return made;
  }

  /** Another core takes over, from the log alone. What the one before had under way is not stored, or is in the log. */
  replace(core: DispatchCore): void {
    this.#intents = [];
    this.#shown = 0;
    this.core = core;
    this.show();
    core.advance(this.log.now);
    core.enter('leading');
  }

  /** One round in which all that is decided is stored, heard of and shown. */
  settle(): void {
    this.pass(500);
    this.show();
    this.decide();
    while (this.#intents.length > 0) this.#outcome(0, 'stored');
    this.show();
  }

  /** What the performer does with a decision, and what may become of it. */
  #outcome(index: number, how: 'stored' | 'unheard' | 'unsent'): void {
    const [intent] = this.#intents.splice(index % Math.max(1, this.#intents.length), 1);
    if (intent === undefined) return;
    const { core, log } = this;
    const { task, seq } = intent;
    if (how === 'unsent') {
      core.unresolved(task, seq, log.now + 500);
      return;
    }
    const truth = log.state(task.id);
    if (!task.known && truth?.seq === seq && task.seq === seq && !core.learn(task, truth, log.now)) return;
    if (task.seq !== seq || !task.known) {
      core.refused(task, seq);
      return;
    }
    const { kind, state } = this.#commandFor(intent, truth);
    const decided = decide(state, {
      kind,
      inlinePayload: true,
      eventId: taskIdOf(0xd000_0000 + log.events.length),
      at: log.now,
      actor: dispatcher,
    } as Command);
    if (!decided.ok) throw new Error(`the core asked for ${kind} of ${task.id}: ${decided.error.message}`);
    const outcome = log.append(decided.value, seq);
    if (how === 'unheard') core.unresolved(task, seq, log.now + 500);
    else if (outcome.status === 'conflict') core.refused(task, seq);
  }

  /** A renewal carries the state as the log has it; anything else is decided on what the core knows. */
  #commandFor({ kind, task, seq }: Decision, truth: TaskState | undefined) {
    if (kind === 'carry' && truth?.seq === seq) return { kind, state: truth };
    const state = stateOf(task, null);
    if (state.cancelRequested) return { kind: 'cancel', state };
    return { kind: deadLetterReason(state, this.log.now) ? 'dead_letter' : kind, state };
  }
}
