import { describe, expect, test } from 'vitest';
import { NotRetryable } from './not-retryable.ts';
import { describeThrown, MAX_MESSAGE, MAX_STACK } from './task-error.ts';

describe('describeThrown', () => {
  test('keeps name, message, code and stack of an error', () => {
    const error = Object.assign(new RangeError('too far'), { code: 'E_FAR' });
    expect(describeThrown(error)).toEqual({
      name: 'RangeError',
      message: 'too far',
      code: 'E_FAR',
      stack: error.stack,
    });
  });

  test.each<[string, unknown, string]>([
    ['undefined', undefined, 'thrown: undefined'],
    ['null', null, 'thrown: null'],
    ['a string', 'boom', 'thrown: boom'],
    ['a BigInt', 10n, 'thrown: 10'],
    ['a symbol', Symbol('s'), 'thrown: Symbol(s)'],
    ['an object', { a: 1 }, 'thrown: {"a":1}'],
  ])('says what was thrown when it is no error: %s', (_what, thrown, message) => {
    expect(describeThrown(thrown)).toEqual({ name: 'NonError', message });
  });

  test('describes a circular object by its keys', () => {
    const circular: Record<string, unknown> = { first: 1 };
    circular['self'] = circular;
    expect(describeThrown(circular).message).toBe('thrown: [object Object] with first, self');
  });

  test('keeps the code of a thrown plain object', () => {
    expect(describeThrown({ code: 404 }).code).toBe('404');
  });

  test('survives an error whose properties throw', () => {
    const hostile = new Proxy(new Error('x'), {
      get() {
        throw new Error('no');
      },
    });
    expect(describeThrown(hostile).name).toBe('UnreadableError');
  });

  test('survives an error whose message is no text', () => {
    expect(describeThrown(Object.assign(new Error('x'), { message: { a: 1 }, name: 7 }))).toMatchObject({
      name: 'Error',
      message: '',
    });
  });

  test('cuts a huge message and a huge stack to their bounds and says how long they were', () => {
    const error = new Error('m'.repeat(1_000_000));
    error.stack = 's'.repeat(1_000_000);
    const described = describeThrown(error);
    expect(described.message.length).toBeLessThanOrEqual(MAX_MESSAGE);
    expect(described.message).toContain('(1000000 characters)');
    expect(described.stack?.length).toBeLessThanOrEqual(MAX_STACK);
  });

  test('replaces NUL and half surrogate pairs, which Postgres cannot hold, and keeps whole pairs', () => {
    expect(describeThrown(new Error('a\0b\uD800c\uDC00d😀')).message).toBe('a\uFFFDb\uFFFDc\uFFFDd😀');
  });

  test('cutting through a surrogate pair leaves no half of it', () => {
    const { message } = describeThrown(new Error('😀'.repeat(MAX_MESSAGE)));
    expect(message).not.toMatch(/[\uD800-\uDBFF](?![\uDC00-\uDFFF])/);
  });

  test('names a NotRetryable with its code', () => {
    expect(describeThrown(new NotRetryable('no such clip', { code: 'clip_missing' }))).toMatchObject({
      name: 'NotRetryable',
      code: 'clip_missing',
    });
  });
});
