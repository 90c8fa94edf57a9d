import { expect, test } from 'vitest';
import { intakeOf } from './intake-view.ts';

const of = { tenant: 'acme', type: 'mail' };

test('intake is open when nothing holds it up', () => {
  expect(intakeOf(of, { type: undefined, tenant: undefined, rates: [] })).toEqual({
    state: 'open',
    reasons: [],
  });
});

test('intake is closed by a full backlog, with the numbers and the level at which it opens again', () => {
  const { state, reasons } = intakeOf(of, {
    type: { type: 'mail', waiting: 120, limit: 100 },
    tenant: { tenant: 'acme', waiting: 9, limit: 9 },
    rates: [],
  });
  expect(state).toBe('closed');
  expect(reasons).toMatchObject([
    { code: 'backlog_full', waiting: 120, limit: 100, resumesAt: 80 },
    { code: 'tenant_backlog_full', waiting: 9, limit: 9, resumesAt: 7 },
  ]);
  expect(reasons[0]?.sentence).toBe(
    'Type mail has 120 tasks waiting; the limit is 100, and submissions are taken again at 80.',
  );
});

test('intake is limited by a rate that is used up, and says for how long', () => {
  const over = { tenant: 'acme', type: undefined, ratePerSecond: 5, burst: 10, retryAfterMs: 200 };
  expect(intakeOf(of, { type: undefined, tenant: undefined, rates: [over] })).toMatchObject({
    state: 'limited',
    reasons: [{ code: 'submission_rate_limited', limit: 5, retryAfterMs: 200 }],
  });
});
