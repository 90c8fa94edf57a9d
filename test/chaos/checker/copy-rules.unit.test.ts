import { describe, expect, test } from 'vitest';
import { check } from './check.ts';
import type { Evidence, Rule } from './evidence.ts';
import { A, rulesOf, sound } from './sound-evidence.ts';

describe('planted in what is made from the log', () => {
  const first = sound.audit[0];
  const feed = sound.feeds['reader'] ?? [];
  if (first === undefined) throw new Error('the sound evidence is empty');

  test.each<[string, Rule, Partial<Evidence>]>([
    [
      'a read model that differs',
      'projections',
      { verified: [{ projection: 'queues', differences: ['queue_counts: 1 changed'] }] },
    ],
    ['a live completion that never was', 'live', { live: [{ seq: 999, taskId: A }] }],
    ['an event that HISTORY lacks', 'history', { history: sound.log.slice(1) }],
    ['an event that HISTORY has twice', 'history', { history: [...sound.log, ...sound.log.slice(-1)] }],
    ['an event that the audit lacks', 'audit', { audit: sound.audit.slice(0, -1) }],
    ['an audit row twice', 'audit', { audit: [first, ...sound.audit] }],
    [
      'an audit row that says something else',
      'audit',
      { audit: [{ ...first, actorId: 'x' }, ...sound.audit.slice(1)] },
    ],
    ['an audit row of no event', 'audit', { audit: [...sound.audit, { ...first, seq: 999 }] }],
    ['a completion that the feed lacks', 'feeds', { feeds: { reader: feed.slice(1) } }],
    ['a completion told twice', 'feeds', { feeds: { reader: [...feed, ...feed.slice(-1)] } }],
    ['completions out of order', 'feeds', { feeds: { reader: feed.toReversed() } }],
    ['a completion that never was', 'feeds', { feeds: { reader: [...feed, { seq: 999, taskId: A }] } }],
  ])('%s', (_name, rule, over) => {
    const violations = check({ ...sound, ...over });
    expect(rulesOf(violations)).toEqual([rule]);
    expect(violations[0]?.witness.length).toBeGreaterThan(0);
  });
});
