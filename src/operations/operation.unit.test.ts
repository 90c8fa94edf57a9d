import { describe, expect, test } from 'vitest';
import {
  advanced,
  begun,
  controlled,
  OperationSchema,
  prepared,
  SHOWN_FAILURES,
  type Wish,
} from './operation.ts';

const NOW = Date.parse('2026-01-01T00:00:00Z');
const actor = { kind: 'key', id: 'k1' } as const;
const started = begun(
  '01890a5d-ac96-774b-bcce-b302099a8057',
  { kind: 'cancellation', tenant: 'acme', input: { reason: 'r' }, actor, asOf: 7 },
  NOW,
);
const wish = (operation: typeof started, asked: Wish) =>
  controlled(operation, { wish: asked, actor, now: NOW + 1 });
const asked = (operation: typeof started, name: Wish) => {
  const result = wish(operation, name);
  if (!result.ok) throw result.error;
  return result.value;
};
const page = (from: string | null, next: string | null, ...outcomes: string[]) => ({ from, next, outcomes });

test('an operation that has begun runs, and is what the bucket keeps', () => {
  expect(started).toMatchObject({ state: 'running', cursor: null, progress: { matched: 0 } });
  expect(OperationSchema.parse(started)).toEqual(started);
});

describe('a page', () => {
  test('adds its outcomes and moves the cursor; the last one ends the operation', () => {
    const first = advanced(started, page(null, 'c1', 'cancelled', 'skipped'), NOW);
    expect(first).toMatchObject({
      state: 'running',
      cursor: 'c1',
      progress: { matched: 2, outcomes: { cancelled: 1, skipped: 1 } },
    });
    const last = advanced(first, page('c1', null, 'cancelled'), NOW);
    expect(last).toMatchObject({ state: 'done', progress: { matched: 3, outcomes: { cancelled: 2 } } });
  });

  test('that was counted already changes nothing', () => {
    const first = advanced(started, page(null, 'c1', 'cancelled'), NOW);
    expect(advanced(first, page(null, 'c1', 'cancelled'), NOW)).toBe(first);
  });

  test('that ends after a pause counts, and leaves the pause; after an abort it does not', () => {
    expect(advanced(asked(started, 'pause'), page(null, 'c1', 'cancelled'), NOW)).toMatchObject({
      state: 'paused',
      cursor: 'c1',
    });
    const aborted = asked(started, 'abort');
    expect(advanced(aborted, page(null, 'c1', 'cancelled'), NOW)).toBe(aborted);
  });

  test('is stored with its targets before it is done, and forgotten when it is counted', () => {
    const target = (taskId: string) => ({ targets: [{ tenant: 'acme', taskId }], next: 'c1' });
    const ready = prepared(started, { from: null, ...target('t1') });
    expect(OperationSchema.parse(ready).page).toEqual(target('t1'));
    expect(prepared(ready, { from: null, ...target('t2') })).toBe(ready);
    const after = advanced(ready, page(null, 'c1', 'cancelled'), NOW);
    expect(after.page).toBeUndefined();
    expect(prepared(after, { from: null, ...target('t1') })).toBe(after);
  });

  test('is not begun after a pause or an abort', () => {
    for (const name of ['pause', 'abort'] as const) {
      const stopped = asked(started, name);
      expect(prepared(stopped, { from: null, targets: [], next: null })).toBe(stopped);
    }
  });

  test('shows the last failures and counts all', () => {
    const failures = Array.from({ length: SHOWN_FAILURES + 5 }, (_, n) => ({
      taskId: `t${n}`,
      code: 'append_conflict',
      message: 'm',
    }));
    const { progress } = advanced(started, { from: null, next: null, outcomes: failures }, NOW);
    expect(progress.outcomes).toEqual({ failed: SHOWN_FAILURES + 5 });
    expect(progress.failures.at(-1)?.taskId).toBe(`t${SHOWN_FAILURES + 4}`);
    expect(progress.failures).toHaveLength(SHOWN_FAILURES);
  });
});

describe('a wish', () => {
  test('pauses, resumes and aborts, and names who asked', () => {
    const paused = asked(started, 'pause');
    expect(paused).toMatchObject({ state: 'paused', changedBy: actor });
    expect(asked(paused, 'resume').state).toBe('running');
    expect(asked(paused, 'abort').state).toBe('aborted');
  });

  test('for what is so already changes nothing', () => {
    expect(asked(started, 'resume')).toBe(started);
  });

  test('comes too late once the operation has ended', () => {
    const done = advanced(started, page(null, null), NOW);
    for (const name of ['pause', 'resume', 'abort'] as const)
      expect(wish(done, name)).toMatchObject({ ok: false, error: { code: 'operation_ended' } });
  });
});
