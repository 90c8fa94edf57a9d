import { describe, expect, test } from 'vitest';
import type { Recorded } from '../../../src/domain/events.ts';
import { NOW, worker } from '../../support/life.ts';
import { check } from './check.ts';
import type { Evidence, Rule } from './evidence.ts';
import { REACHES_WITHIN_MS } from './pause-rule.ts';
import { C, change, idOf, LATER, REPLAY, rulesOf, sound, tampered } from './sound-evidence.ts';

describe('planted in what tasks share', () => {
  const keyed = (key: object) => (life: Recorded[]) =>
    change(life, 0, { data: { ...life[0]?.event.data, ...key } });
  const found = (tamper: (lives: Recorded[][]) => void) => check(tampered(tamper));

  test('two attempts of a concurrency key at once', () => {
    const violations = found((lives) => lives.forEach(keyed({ concurrencyKey: 'gpu' })));
    expect(rulesOf(violations)).toEqual(['limits']);
    expect(violations[0]?.message).toContain('the key acme/transcode/gpu');
  });
  test('two tasks of an ordering key at once', () => {
    const violations = found((lives) => lives.forEach(keyed({ orderingKey: 'clip' })));
    expect(rulesOf(violations)).toEqual(['order']);
    expect(violations[0]?.witness.length).toBeLessThanOrEqual(4);
  });
  test('a task of an ordering key that overtakes one that waits for its retry', () => {
    const violations = found((lives) => {
      const [a, b] = lives;
      lives.slice(0, 2).forEach(keyed({ orderingKey: 'reel' }));
      // One after the other, but B is served first.
      if (a !== undefined && b !== undefined)
        lives.splice(0, 2, [...b.slice(0, 1), ...a.slice(0, 1), ...b.slice(1), ...a.slice(1)]);
    });
    expect(rulesOf(violations)).toEqual([]);
    const overtaking = found((lives) => {
      const [a, b] = lives;
      lives.slice(0, 2).forEach(keyed({ orderingKey: 'reel' }));
      if (a !== undefined && b !== undefined) lives.splice(0, 2, [...b.slice(0, 5), ...a, ...b.slice(5)]);
    });
    expect(rulesOf(overtaking)).toEqual(['order']);
    expect(overtaking[0]?.message).toContain('was before it');
  });
  test('a version that the worker does not know', () => {
    const violations = found(([a]) => change(a, 0, { data: { payload: 1, version: 2 } }));
    expect(rulesOf(violations)).toEqual(['versions']);
    expect(
      rulesOf(
        found(([a]) => {
          change(a, 0, { data: { payload: 1, version: 2 } });
          for (const index of [2, 3, 4]) change(a, index, { actor: worker('w1-r2-77') });
        }),
      ),
    ).toEqual([]);
  });
});

describe('planted in what operators and schedules ask for', () => {
  const [slot] = sound.slots;
  if (slot === undefined) throw new Error('the sound evidence is empty');

  test.each<[string, Rule, Partial<Evidence>]>([
    ['more running attempts than the limit', 'limits', { limits: [{ max: 3 }] }],
    [
      "more than a tenant's limit of a type",
      'limits',
      { limits: [{ tenant: 'acme', type: 'transcode', max: 2 }] },
    ],
    [
      'a task that was queued in a pause',
      'pauses',
      { pauses: [{ tenant: 'acme', from: NOW - 2 * REACHES_WITHIN_MS, until: LATER }] },
    ],
    ['an operation that was forgotten', 'bulks', { bulksAccepted: [REPLAY, idOf(5)] }],
    [
      'an operation that does not end',
      'bulks',
      { bulks: [{ id: REPLAY, kind: 'replay', state: 'running', moved: 1 }] },
    ],
    [
      'a step that is not in the log',
      'bulks',
      { bulks: [{ id: REPLAY, kind: 'replay', state: 'done', moved: 2 }] },
    ],
    [
      'a step that nobody counted',
      'bulks',
      { bulks: [{ id: REPLAY, kind: 'replay', state: 'done', moved: 0 }] },
    ],
    ['a missed slot', 'slots', { slots: sound.slots.slice(1) }],
    ['a slot fired twice', 'slots', { slots: [...sound.slots, { ...slot, taskId: C }] }],
    [
      'an unexpected slot fired twice',
      'slots',
      { slots: [...sound.slots, ...twice({ ...slot, slotAt: NOW - 5 })] },
    ],
  ])('%s', (_name, rule, over) => {
    const violations = check({ ...sound, ...over });
    expect(rulesOf(violations)).toEqual([rule]);
    expect(violations[0]?.witness.length).toBeGreaterThan(0);
  });
});

const twice = <T>(item: T): T[] => [item, item];
