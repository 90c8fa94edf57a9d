import { describe, expect, test } from 'vitest';
import { storableResult } from './result.ts';

const limits = { maxBytes: 1_000, maxDepth: 8 };
const nested = (levels: number): unknown => JSON.parse('['.repeat(levels) + ']'.repeat(levels));

describe('storableResult', () => {
  test('undefined is no result', () => {
    expect(storableResult(undefined, limits)).toEqual({ ok: true, value: undefined });
  });

  test.each([[null], [0], [''], [false], [{ a: [1, { b: null }] }], ['a\\u0000 escaped backslash'], ['😀']])(
    'takes %j as it is',
    (value) => {
      expect(storableResult(value, limits)).toEqual({ ok: true, value });
    },
  );

  test('is a snapshot: what the handler changes later does not matter', () => {
    const value = { n: 1 };
    const stored = storableResult(value, limits);
    value.n = 2;
    expect(stored).toEqual({ ok: true, value: { n: 1 } });
  });

  test('holds what JSON makes of dates and of keys without a value', () => {
    expect(storableResult({ at: new Date(0), gone: undefined }, limits)).toEqual({
      ok: true,
      value: { at: '1970-01-01T00:00:00.000Z' },
    });
  });

  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  test.each<[string, unknown, string]>([
    ['a circular object', circular, 'circular'],
    ['a BigInt', { n: 1n }, 'BigInt'],
    ['a function', () => 1, 'function'],
    ['a symbol', Symbol('s'), 'symbol'],
    ['what is too large', 'x'.repeat(999), 'has 1001 bytes, the limit is 1000'],
    ['multi-byte text by its bytes', '€'.repeat(400), 'has 1202 bytes'],
    ['what is too deep', nested(9), 'deeper than 8 levels'],
    ['NUL in a string', { a: 'x\0y' }, '\\u0000'],
    ['NUL in a key', { 'x\0y': 1 }, '\\u0000'],
    ['NUL behind a backslash', '\\\0', '\\u0000'],
    ['half a surrogate pair', ['\uD83D'], '\\ud83d'],
    ['an object whose toJSON throws', { toJSON: () => nested.call(null, -1) }, 'not JSON'],
  ])('refuses %s', (_what, value, reason) => {
    const stored = storableResult(value, limits);
    expect(stored).toMatchObject({ ok: false });
    expect(stored.ok ? '' : stored.reason).toContain(reason);
  });

  test('takes what is just as deep as allowed', () => {
    expect(storableResult(nested(8), limits).ok).toBe(true);
  });

  test('brackets in strings are no depth', () => {
    expect(storableResult('[{'.repeat(50), limits).ok).toBe(true);
    expect(storableResult(`"${'['.repeat(50)}`, limits).ok).toBe(true);
  });

  test('a nesting that overflows the stack is refused, not thrown', () => {
    let deep: unknown = 1;
    for (let i = 0; i < 200_000; i++) deep = [deep];
    expect(storableResult(deep, limits).ok).toBe(false);
  });
});
