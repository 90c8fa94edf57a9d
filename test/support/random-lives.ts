import type { Command, CommandOf } from '../../src/domain/commands.ts';
import { decide } from '../../src/domain/decide.ts';
import type { Recorded } from '../../src/domain/events.ts';
import { evolve, type TaskState } from '../../src/domain/task.ts';
import {
  cancel,
  carry,
  claim,
  complete,
  deadLetter,
  debounce,
  discard,
  fail,
  ingest,
  lose,
  NOW,
  queue,
  reject,
  replay,
  requestCancel,
  requeue,
  reschedule,
  start,
  worker,
} from './life.ts';

export interface RandomLivesOptions {
  readonly seed: number;
  /** Under way at the same time; one that has ended for good makes room for the next. */
  readonly tasks: number;
  readonly events: number;
}

const uuid = (space: number, n: number): string =>
  `${space.toString(16).padStart(8, '0')}-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;

/**
 * Interleaved lives in which everything happens that the domain allows: failures, lost leases, cancellations, dead
 * letters, replays with and without a new payload, CARRIED events. Sequences are 1, 2, ...; the same seed gives the same.
 */
export function randomLives({ seed, tasks, events: count }: RandomLivesOptions): Recorded[] {
  const dice = randomOf(seed);
  const live = Array.from({ length: tasks }, (_, number) => ({
    number,
    state: undefined as TaskState | undefined,
  }));
  const events: Recorded[] = [];
  let begun = tasks;
  while (events.length < count) {
    const life = live[Math.floor(dice() * live.length)];
    if (life === undefined) break;
    const seq = events.length + 1;
    const meta = { eventId: uuid(0xe0e0, seq), at: NOW + 1_000 * seq };
    const decided = decide(life.state, { ...draw(life.number, life.state, dice), ...meta });
    if (!decided.ok) continue;
    const recorded = { seq, storedAt: meta.at + 3, event: decided.value };
    events.push(recorded);
    life.state = evolve(life.state, recorded);
    const { status, discarded } = life.state;
    if (status !== 'COMPLETED' && status !== 'REJECTED' && !discarded) continue;
    life.number = begun;
    life.state = undefined;
    begun += 1;
  }
  return events;
}

function draw(task: number, state: TaskState | undefined, dice: () => number): Command {
  if (state === undefined) {
    const born = { taskId: uuid(0x7a5c, task), tenant: `tenant-${task % 3}`, type: `type-${task % 2}` };
    return dice() < 0.05 ? { ...reject(), ...born } : firstCommand(task, born, dice);
  }
  const by = `w${Math.floor(dice() * 3)}`;
  const holder = state.holder ?? by;
  const draws: (() => Command)[] = [
    () => queue({ inlinePayload: dice() < 0.8, pardon: dice() < 0.2 }),
    () => requeue(),
    () => claim(by),
    () => start(holder, state.attempt),
    () => complete(holder, state.attempt),
    () => fail(holder, state.attempt),
    () => lose(state.attempt, by),
    () => deadLetter(),
    () => replay(dice() < 0.5 ? { payload: { edited: state.seq } } : {}),
    () => carry(),
    () =>
      state.facts.debounce === undefined
        ? carry()
        : debounce({ payload: { pushed: state.seq }, submittedAt: NOW + state.seq }),
    () => reschedule(dice() < 0.5 ? { priority: 3, runAt: NOW + 6_000_000 } : { priority: 1, runAt: null }),
    () => (dice() < 0.3 ? discard() : replay()),
    () => (dice() < 0.2 ? requestCancel() : cancel(worker(holder))),
  ];
  return (draws[Math.floor(dice() * draws.length)] ?? carry)();
}

function firstCommand(
  task: number,
  born: { taskId: string; tenant: string; type: string },
  dice: () => number,
): CommandOf<'ingest'> {
  return ingest({
    ...born,
    payload: { task, text: 'a "quoted" \\ back\tslash,\n{braces} ünï\u0000code' },
    priority: 1 + (task % 4),
    policy: { maxRetries: task % 3 },
    ...(dice() < 0.3 ? { idempotencyKey: `order "${task}", \\N` } : {}),
    ...(dice() < 0.3 ? { runAt: NOW + 5_000_000 } : {}),
    ...(dice() < 0.3 ? { deadlineAt: NOW + 9_000_000 } : {}),
    // No die is thrown for it: the same seed goes on giving the same lives.
    ...(task % 4 === 1 ? { debounce: { key: 'k', until: NOW + 9_000_000, at: NOW } } : {}),
    ...(task % 3 === 0 ? { schedule: { name: 'nightly', slotAt: NOW - 60_000 * task } } : {}),
  });
}

/** Mulberry32: small, seeded, good enough to shuffle tests. Uniform in [0, 1). */
export function randomOf(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
