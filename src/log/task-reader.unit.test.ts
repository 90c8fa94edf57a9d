import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { commandOf, MOVES, type Move } from '../../test/contract/log/tasks.ts';
import { decide } from '../domain/decide.ts';
import type { Recorded } from '../domain/events.ts';
import { evolve, type TaskState } from '../domain/task.ts';
import { stateOf } from './open.ts';
import { isWhole } from './task-reader.ts';

const TASK = '0b6f1c1e-0000-4000-8000-000000000000';

/** What the log would hold after the moves; those that are illegal leave nothing. */
function historyOf(moves: readonly Move[]): Recorded[] {
  const history: Recorded[] = [];
  let state: TaskState | undefined;
  for (const move of moves) {
    const decided = decide(state, commandOf(move, TASK, state));
    if (!decided.ok) continue;
    const recorded = { seq: history.length + 1, storedAt: decided.value.at, event: decided.value };
    history.push(recorded);
    state = evolve(state, recorded);
  }
  return history;
}

const lastOfEachKind = (history: readonly Recorded[]): Recorded[] =>
  history.filter(({ event }, n) => !history.slice(n + 1).some((later) => later.event.kind === event.kind));

describe('the last events of each kind', () => {
  test('are all events of a task that went straight through', () => {
    const history = historyOf(['ingest', 'queue', 'claim', 'start', 'complete']);
    expect(isWhole(lastOfEachKind(history))).toBe(true);
  });

  test.each<{ moves: Move[] }>([
    { moves: ['ingest', 'queue', 'claim', 'start', 'fail', 'queue'] },
    { moves: ['ingest', 'queue', 'claim', 'lose', 'queue', 'claim', 'start', 'complete'] },
    { moves: ['ingest', 'queue', 'requeue'] },
    { moves: ['ingest', 'carry', 'carry'] },
    { moves: ['ingest', 'request_cancel', 'replay', 'request_cancel', 'replay'] },
  ])('are not all after $moves', ({ moves }) => {
    expect(isWhole(lastOfEachKind(historyOf(moves)))).toBe(false);
  });

  test('are never taken for all when one is missing, whatever the history', () => {
    // Mostly legal scripts: random moves alone rarely get past the first event.
    const laps = fc.constantFrom<Move[]>(
      ['queue', 'claim', 'start', 'fail'],
      ['queue', 'claim', 'lose'],
      ['queue', 'claim', 'start', 'request_cancel', 'cancel', 'replay'],
      ['queue', 'claim', 'start', 'fail_for_good', 'dead_letter', 'replay'],
      ['carry'],
      ['request_cancel', 'replay'],
    );
    const script = fc
      .array(fc.oneof(laps, fc.array(fc.constantFrom(...MOVES), { maxLength: 3 })), { maxLength: 12 })
      .map((parts) => ['ingest', ...parts.flat()] as Move[]);
    fc.assert(
      fc.property(script, (moves) => {
        const history = historyOf(moves);
        const lasts = lastOfEachKind(history);
        if (isWhole(lasts)) expect(lasts).toEqual(history);
      }),
      { numRuns: 2_000 },
    );
  });
});

describe('a state', () => {
  const history = historyOf(['ingest', 'queue', 'claim', 'start', 'fail', 'queue', 'claim']);

  test('is folded from the first event that a task can be known from', () => {
    const whole = stateOf(history);
    for (const aged of [1, 2, 5]) {
      expect(stateOf(history.slice(aged))).toMatchObject({
        status: 'CLAIMED',
        attempt: whole?.attempt,
        seq: whole?.seq,
      });
    }
  });

  test('is unknown when no such event is left', () => {
    expect(stateOf(history.slice(6))).toBeUndefined();
    expect(stateOf([])).toBeUndefined();
  });
});
