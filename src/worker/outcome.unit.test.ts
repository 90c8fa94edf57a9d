import { describe, expect, test } from 'vitest';
import type { AbortCause } from './attempt-aborted.ts';
import { NotRetryable } from './not-retryable.ts';
import { type Ending, outcomeOf } from './outcome.ts';

const limits = { maxBytes: 1_000, maxDepth: 8 };
const untyped = { parseResult: (value: unknown) => ({ ok: true as const, value }) };
const outcome = (ending: Ending, abort?: AbortCause) => outcomeOf(ending, abort, untyped, limits);
const CAUSES: readonly AbortCause[] = [
  'timeout',
  'deadline',
  'cancelled',
  'superseded',
  'lease_expired',
  'shutdown',
];

describe('outcomeOf', () => {
  test('a returned value completes the attempt', () => {
    expect(outcome({ kind: 'returned', value: { a: 1 } })).toEqual({ status: 'completed', result: { a: 1 } });
  });

  test.each(CAUSES)('a returned value completes the attempt even after an abort by %s', (cause) => {
    expect(outcome({ kind: 'returned', value: 1 }, cause)).toEqual({ status: 'completed', result: 1 });
  });

  test('a throw fails the attempt, to be retried', () => {
    const got = outcome({ kind: 'threw', thrown: new Error('no') });
    expect(got).toMatchObject({ status: 'failed', error: { message: 'no' } });
    expect(got).not.toHaveProperty('final');
  });

  test('a thrown NotRetryable fails it for good', () => {
    expect(outcome({ kind: 'threw', thrown: new NotRetryable('never') })).toMatchObject({
      status: 'failed',
      final: 'not_retryable',
    });
  });

  const abortOutcomes: Record<AbortCause, object> = {
    timeout: { status: 'failed', error: { name: 'TimeoutError', code: 'attempt_timeout' } },
    deadline: { status: 'failed', error: { name: 'TimeoutError' }, final: 'deadline' },
    cancelled: { status: 'cancelled' },
    superseded: { status: 'lost', reason: 'superseded' },
    lease_expired: { status: 'lost', reason: 'lease_expired' },
    shutdown: { status: 'released', reason: 'shutdown' },
  };
  test.each(CAUSES)('a throw after an abort by %s is taken as obedience to it', (cause) => {
    expect(outcome({ kind: 'threw', thrown: new Error('any') }, cause)).toMatchObject(abortOutcomes[cause]);
  });
  test.each(CAUSES)('a handler given up after an abort by %s ends as if it had obeyed', (cause) => {
    expect(outcome({ kind: 'given_up' }, cause)).toMatchObject(abortOutcomes[cause]);
  });
  test('a timeout may be retried', () => {
    expect(outcome({ kind: 'given_up' }, 'timeout')).not.toHaveProperty('final');
  });

  test('a result that cannot be stored fails the attempt for good', () => {
    expect(outcome({ kind: 'returned', value: 1n })).toMatchObject({
      status: 'failed',
      error: { name: 'InvalidResult', code: 'result_invalid' },
      final: 'not_retryable',
    });
  });

  test('a result that does not fit its definition fails the attempt for good, even when the check throws', () => {
    const unfit = { parseResult: () => ({ ok: false as const, reason: 'result.frames: expected number' }) };
    expect(outcomeOf({ kind: 'returned', value: 1 }, undefined, unfit, limits)).toMatchObject({
      final: 'not_retryable',
      error: { message: 'result.frames: expected number' },
    });
    const broken = {
      parseResult: () => {
        throw new Error('check broke');
      },
    };
    expect(outcomeOf({ kind: 'returned', value: 1 }, undefined, broken, limits)).toMatchObject({
      final: 'not_retryable',
      error: { message: 'check broke' },
    });
  });
});
