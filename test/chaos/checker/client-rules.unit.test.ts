import { describe, expect, test } from 'vitest';
import { NOW } from '../../support/life.ts';
import { check } from './check.ts';
import type { Evidence, Rule } from './evidence.ts';
import { A, C, D, idOf, rulesOf, sound, submitted } from './sound-evidence.ts';

describe('planted in what clients were told', () => {
  const planted = (...operations: Evidence['operations']) => check({ ...sound, operations });

  test.each<[string, Rule, Evidence['operations'][number]]>([
    ['a lost submission', 'acknowledged', submitted(idOf(7))],
    ['an answer with another place', 'acknowledged', submitted(A, { seq: 3 })],
    ['an answer for another type', 'acknowledged', submitted(A, { type: 'thumbnail' })],
    ['a refusal that was stored', 'refused', submitted(A, { outcome: 'refused' })],
    [
      'a lost cancellation',
      'commands',
      { op: 'cancel', at: NOW, tenant: 'acme', taskId: A, outcome: 'acknowledged' },
    ],
    [
      'a lost change',
      'commands',
      { op: 'reschedule', at: NOW, tenant: 'acme', taskId: D, outcome: 'acknowledged' },
    ],
    [
      'a lost discard',
      'commands',
      { op: 'discard', at: NOW, tenant: 'acme', taskId: C, outcome: 'acknowledged' },
    ],
    ["a submission of another tenant's id", 'acknowledged', submitted(A, { tenant: 'zeta' })],
  ])('%s', (_name, rule, operation) => {
    expect(rulesOf(planted(operation))).toEqual([rule]);
  });

  test('a refusal beside an answer that never came says nothing', () => {
    expect(planted(submitted(A, { outcome: 'refused' }), submitted(A, { outcome: 'unknown' }))).toEqual([]);
  });
});
