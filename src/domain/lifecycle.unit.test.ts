import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import * as life from '../../test/support/life.ts';
import { decodeEvent, encodeEvent } from './codec.ts';
import { type Command, CommandSchema } from './commands.ts';
import { decide } from './decide.ts';
import {
  EVENT_KINDS,
  type EventKind,
  type Recorded,
  STATUSES,
  type Status,
  TaskEventSchema,
} from './events.ts';
import { evolve, fold, isBeginning, RUNNING, type TaskState, TERMINAL } from './task.ts';

/**
 * The model-based proof: several workers, a dispatcher and a user act on one task in any order, each on the state
 * they happen to have seen last, through the fence. Whatever they do, the log keeps the promises below. The promises
 * are checked on the events alone, by code that shares nothing with `evolve`.
 */

const WORKERS = ['w1', 'w2', 'w3'] as const;
type Move = {
  readonly kind: Command['kind'] | 'sensible';
  readonly worker: (typeof WORKERS)[number];
  /** How many events ago the actor looked at the task. */
  readonly stale: number;
  /** Added to the attempt number that the actor believes in. */
  readonly attemptError: number;
  readonly roll: number;
  readonly clock: number;
};

const kinds = [
  'ingest',
  'reject',
  'queue',
  'requeue',
  'claim',
  'start',
  'complete',
  'fail',
  'lose',
  'dead_letter',
  'request_cancel',
  'cancel',
  'replay',
  'discard',
  'reschedule',
  'debounce',
  'carry',
] as const satisfies readonly Command['kind'][];

const moves: fc.Arbitrary<Move> = fc.record({
  kind: fc.oneof(
    { weight: 5, arbitrary: fc.constant('sensible' as const) },
    { weight: 1, arbitrary: fc.constantFrom(...kinds) },
  ),
  worker: fc.constantFrom(...WORKERS),
  stale: fc.oneof({ weight: 6, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(4) }),
  attemptError: fc.oneof(
    { weight: 8, arbitrary: fc.constant(0) },
    { weight: 1, arbitrary: fc.constantFrom(-1, 1) },
  ),
  // Without bias: fast-check prefers the ends of a range, and most lives would end at once.
  roll: fc.noBias(fc.nat(99)).map((percent) => percent / 100),
  clock: fc.nat(2_000),
});
const submissions = fc.record({
  maxRetries: fc.nat(2),
  maxLost: fc.nat(2),
  payload: fc.constantFrom(null, 0, { clip: 1 }, 'text'),
  deadlineAt: fc.option(fc.integer({ min: life.NOW + 1_500, max: life.NOW + 3_000 }), { nil: undefined }),
  runAt: fc.option(fc.constant(life.NOW + 500), { nil: undefined }),
  debounced: fc.boolean(),
});
type Submission = typeof submissions extends fc.Arbitrary<infer T> ? T : never;

/** What a well-behaved actor would do next, so that lives go far; any other command comes from `kind`. */
function sensible(state: TaskState | undefined, roll: number): Command['kind'] {
  if (state === undefined) return roll < 0.95 ? 'ingest' : 'reject';
  if (state.status === 'QUEUED') return roll < 0.85 ? 'claim' : roll < 0.95 ? 'requeue' : 'carry';
  if (state.status === 'CLAIMED') return roll < 0.8 ? 'start' : 'lose';
  if (state.status === 'PROCESSING') {
    if (state.cancelRequested) return roll < 0.5 ? 'cancel' : 'fail';
    return roll < 0.1 ? 'complete' : roll < 0.6 ? 'fail' : roll < 0.9 ? 'lose' : 'carry';
  }
  if (TERMINAL.has(state.status)) return roll < 0.95 ? 'replay' : 'discard';
  if (state.cancelRequested) return 'cancel';
  if (state.next !== undefined && 'final' in state.next) return roll > 0.1 ? 'dead_letter' : 'queue';
  if (state.facts.debounce !== undefined && roll < 0.4) return 'debounce';
  return roll < 0.85 ? 'queue' : 'reschedule';
}

function commandOf(move: Move, seen: TaskState | undefined, submission: Submission): Command {
  const kind = move.kind === 'sensible' ? sensible(seen, move.roll) : move.kind;
  const attempt = Math.max(1, (seen?.attempt ?? 1) + move.attemptError);
  // A sensible worker acts on what it holds; any other move is made by whoever comes along.
  const by = move.kind === 'sensible' ? (seen?.holder ?? move.worker) : move.worker;
  const { maxRetries, maxLost, payload, deadlineAt, runAt, debounced } = submission;
  const debounce = debounced ? { key: 'k', until: life.NOW + 2_000, at: life.NOW } : undefined;
  const commands: { [K in Command['kind']]: () => Command } = {
    ingest: () =>
      life.ingest({
        payload,
        policy: { maxRetries, maxLost },
        deadlineAt,
        runAt,
        fingerprint: 'f',
        debounce,
      }),
    reject: life.reject,
    queue: () => life.queue({ inlinePayload: move.roll < 0.5, pardon: move.roll < 0.1 }),
    requeue: life.requeue,
    claim: () => life.claim(by),
    start: () => life.start(by, attempt),
    complete: () => life.complete(by, attempt),
    fail: () => life.fail(by, attempt, { dice: move.roll, ...(move.roll < 0.1 ? { final: 'poison' } : {}) }),
    lose: () => life.lose(attempt, move.worker),
    dead_letter: () => life.deadLetter(),
    request_cancel: life.requestCancel,
    cancel: () => life.cancel(life.worker(by)),
    replay: () => life.replay(move.roll < 0.3 ? { payload: { edited: true } } : {}),
    discard: life.discard,
    reschedule: () =>
      life.reschedule(move.roll < 0.5 ? { runAt: null } : { priority: 3, runAt: life.NOW + 700 }),
    debounce: () =>
      life.debounce({
        payload: { pushed: move.clock },
        priority: move.roll < 0.2 ? 3 : 2,
        submittedAt: life.NOW + move.clock,
        once: move.roll < 0.3,
      }),
    carry: life.carry,
  };
  return { ...commands[kind](), at: life.NOW + move.clock };
}

interface Lived {
  readonly log: readonly Recorded[];
  /** All that was tried, refused or not. */
  readonly commands: readonly Command[];
  readonly state: TaskState | undefined;
}

/** Plays the moves on a log that has nothing but the fence: an append counts only if its writer had seen the last event. */
function play(script: readonly Move[], submission: Submission): Lived {
  const log: Recorded[] = [];
  const commands: Command[] = [];
  const states: (TaskState | undefined)[] = [undefined];
  script.forEach((move, index) => {
    const seen = states[Math.max(0, states.length - 1 - move.stale)];
    const id = `00000000-0000-4000-8000-${index.toString(16).padStart(12, '0')}`;
    const command = { ...commandOf(move, seen, submission), eventId: id };
    commands.push(command);
    const decided = decide(seen, command);
    const expectedSeq = seen?.seq ?? 0;
    if (!decided.ok || expectedSeq !== (log.at(-1)?.seq ?? 0)) return;
    const recorded = { seq: 3 * index + 1, storedAt: command.at + 5, event: decided.value };
    log.push(recorded);
    states.push(evolve(states.at(-1), recorded));
  });
  return { log, commands, state: states.at(-1) };
}

/** For every life that random scripts lead to. */
const forEveryLife = (promise: (lived: Lived, submission: Submission) => void): void => {
  fc.assert(
    fc.property(
      fc.array(moves, { minLength: 1, maxLength: 80, size: 'max' }),
      submissions,
      (script, submission) => promise(play(script, submission), submission),
    ),
    { numRuns: 200 },
  );
};

const waiting = ['INGESTED', 'QUEUED', 'FAILED', 'RETRY_CLAIMED', 'REPLAYED'] as const;
const running = ['CLAIMED', 'PROCESSING'] as const;
/** The statuses that each kind of event may leave. */
const MOVES: Record<EventKind, readonly (Status | null)[]> = {
  INGESTED: [null],
  REJECTED: [null],
  QUEUED: ['INGESTED', 'QUEUED', 'FAILED', 'RETRY_CLAIMED', 'REPLAYED'],
  CLAIMED: ['QUEUED'],
  PROCESSING: ['CLAIMED'],
  COMPLETED: ['PROCESSING'],
  FAILED: ['PROCESSING'],
  RETRY_CLAIMED: running,
  DEAD_LETTER: waiting,
  REPLAYED: ['DEAD_LETTER', 'CANCELLED'],
  DISCARDED: ['DEAD_LETTER'],
  RESCHEDULED: ['INGESTED', 'FAILED', 'RETRY_CLAIMED', 'REPLAYED'],
  CANCEL_REQUESTED: running,
  CANCELLED: [...waiting, ...running],
  CARRIED: [...waiting, ...running],
};

const STATUSLESS = ['CANCEL_REQUESTED', 'CARRIED', 'DISCARDED', 'RESCHEDULED'] as const;
const statusAfter = (kind: EventKind, from: Status | null): Status =>
  (STATUSLESS as readonly EventKind[]).includes(kind) ? (from as Status) : (kind as Status);
const ENDS: ReadonlySet<EventKind> = new Set([
  'COMPLETED',
  'FAILED',
  'RETRY_CLAIMED',
  'DEAD_LETTER',
  'CANCELLED',
]);

describe('whatever several actors do in whatever order', () => {
  test('at most one attempt is live, and only its holder ends it by an outcome', () => {
    forEveryLife(({ log }) => {
      let live: { attempt: number; holder: string } | undefined;
      for (const { event } of log) {
        if (event.kind === 'CLAIMED') {
          expect(live).toBeUndefined();
          live = { attempt: event.attempt, holder: event.actor.id };
        } else if (event.kind === 'PROCESSING' || event.kind === 'COMPLETED' || event.kind === 'FAILED') {
          expect(live).toEqual({ attempt: event.attempt, holder: event.actor.id });
        } else if (event.kind === 'RETRY_CLAIMED') {
          expect(live).toEqual({ attempt: event.attempt, holder: event.data.lostWorker });
        } else if (event.kind === 'QUEUED') {
          expect(live).toBeUndefined();
        }
        if (ENDS.has(event.kind)) live = undefined;
      }
    });
  });

  test('every move is one of the diagram', () => {
    forEveryLife(({ log }) => {
      for (const { event } of log) expect(MOVES[event.kind]).toContain(event.from);
    });
  });

  test('attempts are numbered 1, 2, 3 … over all rounds, one for each claim', () => {
    forEveryLife(({ log }) => {
      let claims = 0;
      for (const { event } of log) {
        if (event.kind === 'CLAIMED') claims += 1;
        expect(event.attempt).toBe(claims);
      }
    });
  });

  test('no round has more attempts than its policy allows, but for lost ones that are pardoned', () => {
    forEveryLife(({ log }, { maxRetries }) => {
      let claims = 0;
      let lost = false;
      let before = 0;
      for (const { event } of log) {
        if (event.kind === 'REPLAYED') {
          claims = 0;
          before = event.attempt;
        }
        if (event.kind === 'CLAIMED') claims += 1;
        if (event.kind === 'QUEUED' && event.data.facts.attemptsBefore > before) {
          expect({ lost, more: event.data.facts.attemptsBefore - before }).toEqual({ lost: true, more: 1 });
          before = event.data.facts.attemptsBefore;
          claims -= 1;
        }
        if (event.kind !== 'CARRIED') lost = event.kind === 'RETRY_CLAIMED';
        expect(claims).toBeLessThanOrEqual(maxRetries + 1);
      }
    });
  });

  test('no attempt follows more lost ones in a round than its policy allows, unless one is pardoned', () => {
    forEveryLife(({ log }, { maxLost }) => {
      let lost = 0;
      let before = 0;
      for (const { event } of log) {
        if (event.kind === 'REPLAYED') {
          lost = 0;
          before = event.attempt;
        }
        if (event.kind === 'RETRY_CLAIMED') {
          lost += 1;
          if (lost > maxLost) expect(event.data.next).toEqual({ final: 'poison' });
        }
        if (event.kind !== 'QUEUED') continue;
        if (event.data.facts.attemptsBefore > before) lost -= 1;
        before = event.data.facts.attemptsBefore;
        expect(event.data.facts.lost).toBe(lost);
        expect(lost).toBeLessThanOrEqual(maxLost);
      }
    });
  });

  test('at most one completion is ever accepted, and nothing follows it', () => {
    forEveryLife(({ log }) => {
      const completed = log.findIndex(({ event }) => event.kind === 'COMPLETED');
      if (completed !== -1) expect(completed).toBe(log.length - 1);
    });
  });

  test('a terminal status is left by REPLAYED only, which starts the next round', () => {
    forEveryLife(({ log }) => {
      let round = 1;
      for (const { event } of log) {
        const after = statusAfter(event.kind, event.from);
        const leavesTheEnd = event.from !== null && TERMINAL.has(event.from) && !TERMINAL.has(after);
        expect(event.kind === 'REPLAYED').toBe(leavesTheEnd);
        if (event.kind === 'REPLAYED') round += 1;
        expect(event.round).toBe(round);
      }
    });
  });

  test('nothing follows a discarded dead letter', () => {
    forEveryLife(({ log }) => {
      const discarded = log.findIndex(({ event }) => event.kind === 'DISCARDED');
      if (discarded !== -1) expect(discarded).toBe(log.length - 1);
    });
  });

  test('a priority changes only by RESCHEDULED, which says what it was', () => {
    forEveryLife(({ log }) => {
      let priority: number | undefined;
      for (const { event } of log) {
        if (event.kind === 'RESCHEDULED') expect(event.data.fromPriority ?? event.priority).toBe(priority);
        else if (event.from !== null) expect(event.priority).toBe(priority);
        priority = event.priority;
      }
    });
  });

  test('an asked cancellation is never followed by another attempt of the round', () => {
    forEveryLife(({ log }) => {
      let asked = false;
      for (const { event } of log) {
        if (event.kind === 'REPLAYED') asked = false;
        if (event.kind === 'CANCEL_REQUESTED') asked = true;
        if (event.kind === 'QUEUED' || event.kind === 'CLAIMED') expect(asked).toBe(false);
      }
    });
  });

  test('counters kept from `from` and the kind alone always show one task, in its status', () => {
    forEveryLife(({ log, state }) => {
      const counts = new Map<Status, number>(STATUSES.map((status) => [status, 0]));
      const add = (status: Status, n: number) => counts.set(status, (counts.get(status) ?? 0) + n);
      for (const { event } of log) {
        if (event.from !== null) add(event.from, -1);
        add(statusAfter(event.kind, event.from), 1);
      }
      expect(new Map([...counts].filter(([, n]) => n !== 0))).toEqual(
        new Map(state === undefined ? [] : [[state.status, 1]]),
      );
    });
  });

  test('the state folded from the whole log is the one kept step by step, and a holder exists only while running', () => {
    forEveryLife(({ log, state }) => {
      expect(fold(log)).toEqual(state);
      if (state !== undefined) expect(state.holder !== undefined).toBe(RUNNING.has(state.status));
    });
  });

  test('a reader that begins at any event that a task can be known from decides like one that has seen everything', () => {
    forEveryLife(({ log, state }, submission) => {
      log.forEach(({ event }, index) => {
        if (!isBeginning(event)) return;
        const late = fold(log.slice(index));
        // What only INGESTED says, and a payload that has to be fetched from its event, may be unknown to the late reader.
        const known = {
          payload: late?.payload,
          payloadSeq: late?.payloadSeq,
          fingerprint: late?.fingerprint,
          ...(event.kind === 'DISCARDED' ? { facts: late?.facts } : {}),
        };
        expect(late).toEqual({ ...state, ...known });
        expect([undefined, state?.payload]).toContainEqual(late?.payload);
        for (const kind of kinds) {
          const move = { kind, worker: 'w1', stale: 0, attemptError: 0, roll: 0.5, clock: 0 } as const;
          const command = commandOf(move, state, submission);
          if ((kind === 'carry' || kind === 'requeue') && late?.payload === undefined) continue;
          expect(life.outcome(decide(late, command))).toBe(life.outcome(decide(state, command)));
        }
      });
    });
  });

  test('the payload is always where the state says it is', () => {
    forEveryLife(({ log, state }) => {
      if (state === undefined || state.status === 'REJECTED') return;
      const holder = log.find(({ seq }) => seq === state.payloadSeq)?.event;
      const held =
        holder?.kind === 'CARRIED'
          ? holder.data.state
          : holder?.kind === 'REPLAYED'
            ? { ...holder.data.carried, ...holder.data }
            : holder?.data;
      expect(held).toMatchObject({ payload: state.payload });
    });
  });

  test('a debounced task is handed out with the payload of the last submission of its key, due within its longest wait', () => {
    forEveryLife(({ log }, { debounced }) => {
      let last: unknown;
      for (const { event } of log) {
        if (event.kind === 'INGESTED') last = event.data.payload;
        if (event.kind === 'RESCHEDULED' && event.data.payload !== undefined) {
          expect(debounced).toBe(true);
          expect(event.from).toBe('INGESTED');
          expect(event.data.dueAt).toBeLessThanOrEqual(life.NOW + 2_000);
          last = event.data.payload;
        }
        if (event.kind === 'REPLAYED') last = event.data.payload ?? last;
        if (event.kind === 'QUEUED') {
          expect(event.data.facts.debounce).toBeUndefined();
          if (event.data.payload !== undefined) expect(event.data.payload).toEqual(last);
        }
      }
    });
  });

  test('every command and event fits its schema, and an event comes back from the log as it went in', () => {
    forEveryLife(({ log, commands }) => {
      for (const command of commands) expect(CommandSchema.safeParse(command).error).toBeUndefined();
      for (const { event } of log) {
        expect(TaskEventSchema.parse(event)).toEqual(event);
        expect(decodeEvent(encodeEvent(event))).toEqual(event);
      }
    });
  });

  test('the scripts reach every kind of event, long lives and many rounds', () => {
    const reached = new Set<EventKind>();
    let longest = 0;
    let rounds = 0;
    forEveryLife(({ log, state }) => {
      for (const { event } of log) reached.add(event.kind);
      longest = Math.max(longest, log.length);
      rounds = Math.max(rounds, state?.round ?? 0);
    });
    expect([...reached].sort()).toEqual([...EVENT_KINDS].sort());
    expect(longest).toBeGreaterThan(20);
    expect(rounds).toBeGreaterThan(2);
  });
});
