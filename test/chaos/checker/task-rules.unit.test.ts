import { describe, expect, test } from 'vitest';
import type { Recorded } from '../../../src/domain/events.ts';
import { NOW, worker } from '../../support/life.ts';
import { check } from './check.ts';
import { change, LATER, repeat, rulesOf, tampered } from './sound-evidence.ts';

describe('planted in the log', () => {
  const found = (tamper: (lives: Recorded[][]) => void) => check(tampered(tamper));

  test('a second completion of a task, accepted', () => {
    const violations = found(([a]) => repeat(a, 4, {}));
    expect(rulesOf(violations).sort()).toEqual(['completions', 'legal']);
    expect(violations[0]?.witness).toHaveLength(6);
  });
  test('a task that never ends', () => {
    const violations = found(([a]) => a?.pop());
    expect(rulesOf(violations)).toEqual(['terminal']);
    expect(violations[0]?.message).toContain('PROCESSING');
  });
  test('an event that leaves a status the task has not', () => {
    expect(rulesOf(found(([a]) => a?.splice(2, 1)))).toEqual(['legal']);
  });
  test('a move that no event may make, though it fits the fold', () => {
    expect(rulesOf(found(([a]) => change(a, 2, { kind: 'COMPLETED', attempt: 0 })))).toContain('legal');
    expect(rulesOf(found(([a]) => a?.splice(3, 2, ...dead(a))))).toEqual(['legal']);
  });
  test('a completion by a worker whose lease was lost', () => {
    const violations = found(([, b]) => change(b, 11, { actor: worker('w2') }));
    expect(rulesOf(violations)).toEqual(['legal']);
    expect(violations[0]?.message).toContain('w3 holds the attempt');
  });
  test('a lost lease that names somebody else', () => {
    expect(
      rulesOf(found(([, b]) => change(b, 7, { data: { ...b?.[7]?.event.data, lostWorker: 'w9' } }))),
    ).toEqual(['legal']);
  });
  test('an attempt that was not counted', () => {
    expect(rulesOf(found(([, b]) => change(b, 6, { attempt: 1 })))).toEqual(['legal']);
  });
  test('a round that was not begun', () => {
    expect(rulesOf(found(([, , c]) => change(c, 6, { round: 1 })))).toEqual(['legal']);
  });
  test('a retry before its backoff is over', () => {
    const violations = found(([, b]) => {
      const early = b?.[5];
      if (early !== undefined) b?.splice(5, 1, { ...early, storedAt: NOW });
    });
    expect(rulesOf(violations)).toEqual(['attempts']);
  });
  test('a delayed task before its time', () => {
    expect(rulesOf(found(([a]) => change(a, 0, { data: { ...a?.[0]?.event.data, runAt: LATER } })))).toEqual([
      'attempts',
    ]);
  });
  test('an attempt more than the policy allows', () => {
    const once = { data: { payload: 1, policy: { maxRetries: 1 } } };
    const violations = found(([, b]) => {
      change(b, 0, once);
      for (const [index, recorded] of (b ?? []).entries()) {
        if (recorded.event.kind !== 'QUEUED') continue;
        const facts = { ...recorded.event.data.facts, policy: { maxRetries: 1 } };
        change(b, index, { data: { ...recorded.event.data, facts } });
      }
    });
    expect(rulesOf(violations)).toEqual(['attempts']);
    expect(violations.map(({ message }) => message)).toContain(
      'attempt 3 of the round, but the policy allows 2',
    );
  });
  test('a retry after a delay that the policy does not give', () => {
    const data = { error: { name: 'Error', message: 'x' }, next: { retryInMs: 3 } };
    expect(rulesOf(found(([, b]) => change(b, 4, { data })))).toEqual(['attempts']);
  });
  test('poison after fewer lost attempts than the policy bears', () => {
    expect(rulesOf(found(([, , c]) => change(c, 10, { data: { reason: 'poison' } })))).toEqual(['attempts']);
  });
  test('a death for want of retries that were left', () => {
    const policy = { maxRetries: 5 };
    const violations = found(([, , c]) => {
      change(c, 0, { data: { payload: 1, policy } });
      for (const index of [1, 7]) {
        const event = c?.[index]?.event;
        if (event?.kind !== 'QUEUED') throw new Error('not the QUEUED that was meant');
        change(c, index, { data: { ...event.data, facts: { ...event.data.facts, policy } } });
      }
    });
    expect(rulesOf(violations)).toEqual(['attempts']);
  });
  test('a task that goes on after it was discarded', () => {
    const violations = found(([, , c]) => {
      const died = c?.[5];
      if (died === undefined) return;
      c?.splice(6, 0, {
        ...died,
        event: {
          ...died.event,
          kind: 'DISCARDED',
          from: 'DEAD_LETTER',
          data: { reason: 'x' },
        } as Recorded['event'],
      });
    });
    expect(rulesOf(violations)).toEqual(['legal']);
  });
  test('a retry of a last attempt that nobody pardoned, and a pardon that nothing calls for', () => {
    expect(
      rulesOf(
        found(([, b]) => change(b, 7, { data: { ...b?.[7]?.event.data, next: { final: 'retries' } } })),
      ),
    ).toEqual(['attempts']);
    const pardoned = found(([a]) =>
      change(a, 1, {
        data: { ...a?.[1]?.event.data, facts: { submittedAt: NOW, attemptsBefore: 0, lost: 0, pardoned: 1 } },
      }),
    );
    expect(rulesOf(pardoned)).toEqual(['attempts']);
  });
  test('a death of a deadline that has not passed', () => {
    expect(rulesOf(found(([, , c]) => change(c, 10, { data: { reason: 'deadline' } })))).toEqual([
      'attempts',
    ]);
  });
});

const dead = (life: readonly Recorded[]): Recorded[] => {
  const last = life.at(-1);
  if (last === undefined) return [];
  const event = { ...last.event, kind: 'DEAD_LETTER', from: 'CLAIMED', data: { reason: 'deadline' } };
  return [{ ...last, event: event as Recorded['event'] }];
};
