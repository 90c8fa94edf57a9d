import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { catalogue } from '../domain/errors.ts';
import { isTaskId } from '../domain/names.ts';
import { canonicalJson } from './canonical-json.ts';
import { reasonOf } from './issue.ts';
import { parseSubmission, type SubmissionContext } from './submission.ts';

const NOW = Date.UTC(2026, 10, 29);
const setup = (over: Partial<SubmissionContext> = {}): SubmissionContext => ({
  tenant: 'acme',
  key: undefined,
  limits: { maxBytes: 1_000, maxDepth: 8 },
  longestWindowMs: 3_600_000,
  now: NOW,
  settingsOf: () => undefined,
  ...over,
});
const accepted = (input: unknown, over: Partial<SubmissionContext> = {}) => {
  const parsed = parseSubmission(input, setup(over));
  if (!parsed.ok) throw parsed.issues[0]?.error ?? new Error('refused without an issue');
  return parsed.submission;
};
const refused = (input: unknown, over: Partial<SubmissionContext> = {}) => {
  const parsed = parseSubmission(input, setup(over));
  return parsed.ok ? [] : parsed.issues.map(reasonOf);
};

const cyclic: Record<string, unknown> = {};
cyclic['self'] = cyclic;
const nested = (depth: number): unknown => JSON.parse(`${'['.repeat(depth)}${']'.repeat(depth)}`);
const task = (over: object) => ({ type: 't', payload: null, ...over });

test('a debounce waits ten windows at most unless it says more, and never longer than the log remembers', () => {
  const windowOf = (debounce: object) => accepted(task({ debounce: { key: 'k', ...debounce } })).window;
  expect(windowOf({ windowMs: 1_000 })).toMatchObject({ maxWaitMs: 10_000 });
  expect(windowOf({ windowMs: 1_000, maxWaitMs: 60_000 })).toMatchObject({ maxWaitMs: 60_000 });
  expect(windowOf({ windowMs: 3_000_000 })).toMatchObject({ maxWaitMs: 3_600_000 });
});

describe('what is refused, with the code and the field', () => {
  test.each<[string, unknown, string, string | undefined]>([
    ['no object', null, 'request_invalid', undefined],
    ['a list', [], 'request_invalid', undefined],
    ['a text', 'transcode', 'request_invalid', undefined],
    [
      'a debounce and a throttle',
      task({ debounce: { key: 'k', windowMs: 1 }, throttle: { key: 'k', windowMs: 1 } }),
      'request_invalid',
      'debounce',
    ],
    [
      'a throttle beside a key',
      task({ id: 'x', throttle: { key: 'k', windowMs: 1 } }),
      'request_invalid',
      'throttle',
    ],
    [
      'a debounce beside a time',
      task({ delayMs: 1, debounce: { key: 'k', windowMs: 1 } }),
      'request_invalid',
      'debounce',
    ],
    [
      'a window of nothing',
      task({ throttle: { key: 'k', windowMs: 0 } }),
      'request_invalid',
      'throttle.windowMs',
    ],
    [
      'a window longer than the log remembers',
      task({ throttle: { key: 'k', windowMs: 3_600_001 } }),
      'request_invalid',
      'throttle.windowMs',
    ],
    [
      'a longest wait shorter than the window',
      task({ debounce: { key: 'k', windowMs: 9, maxWaitMs: 8 } }),
      'request_invalid',
      'debounce.maxWaitMs',
    ],
    [
      'a NUL in a window key',
      task({ debounce: { key: '\0', windowMs: 9 } }),
      'payload_has_nul',
      'debounce.key',
    ],
    ['no type', { payload: 1 }, 'name_invalid', 'type'],
    ['a type with a dot', task({ type: 'a.b' }), 'name_invalid', 'type'],
    ['a type with a star', task({ type: '*' }), 'name_invalid', 'type'],
    ['a type with >', task({ type: 'a>' }), 'name_invalid', 'type'],
    ['a type with capitals', task({ type: 'Mail' }), 'name_invalid', 'type'],
    ['a type with a space', task({ type: 'a b' }), 'name_invalid', 'type'],
    ['an empty type', task({ type: '' }), 'name_invalid', 'type'],
    ['a type of 64 characters', task({ type: 'a'.repeat(64) }), 'name_invalid', 'type'],
    ['a type that is no text', task({ type: 7 }), 'name_invalid', 'type'],
    ['no payload', { type: 't' }, 'request_invalid', 'payload'],
    ['an unknown field', task({ prioritty: 1 }), 'request_invalid', 'prioritty'],
    ['priority 0', task({ priority: 0 }), 'request_invalid', 'priority'],
    ['priority 5', task({ priority: 5 }), 'request_invalid', 'priority'],
    ['priority 1.5', task({ priority: 1.5 }), 'request_invalid', 'priority'],
    ['priority as a text', task({ priority: '1' }), 'request_invalid', 'priority'],
    ['an unknown policy field', task({ policy: { retries: 1 } }), 'request_invalid', 'policy.retries'],
    ['too many retries', task({ policy: { maxRetries: 101 } }), 'request_invalid', 'policy.maxRetries'],
    [
      'a backoff of no kind',
      task({ policy: { backoff: { kind: 'x' } } }),
      'request_invalid',
      'policy.backoff.kind',
    ],
    [
      'NUL in a policy',
      task({ policy: { notRetryable: ['a\0'] } }),
      'payload_has_nul',
      'policy.notRetryable[0]',
    ],
    ['an empty ordering key', task({ orderingKey: '' }), 'request_invalid', 'orderingKey'],
    ['an ordering key that is no text', task({ orderingKey: 7 }), 'request_invalid', 'orderingKey'],
    ['NUL in a concurrency key', task({ concurrencyKey: 'a\0' }), 'payload_has_nul', 'concurrencyKey'],
    ['runAt in no format', task({ runAt: 'tomorrow' }), 'run_at_invalid', 'runAt'],
    ['runAt without a zone', task({ runAt: '2026-01-31T09:30:00' }), 'run_at_invalid', 'runAt'],
    ['runAt on 30 February', task({ runAt: '2026-02-30T09:30:00Z' }), 'run_at_invalid', 'runAt'],
    ['runAt at 25:00', task({ runAt: '2026-01-31T25:00:00Z' }), 'run_at_invalid', 'runAt'],
    ['runAt as a date', task({ runAt: '2026-01-31' }), 'run_at_invalid', 'runAt'],
    ['runAt as a number in a text', task({ runAt: '1769851800000' }), 'run_at_invalid', 'runAt'],
    ['runAt before 1970', task({ runAt: -1 }), 'run_at_invalid', 'runAt'],
    ['runAt after the year 9999', task({ runAt: 253_402_300_800_000 }), 'run_at_invalid', 'runAt'],
    ['runAt with a fraction', task({ runAt: 1.5 }), 'run_at_invalid', 'runAt'],
    ['runAt as an object', task({ runAt: {} }), 'run_at_invalid', 'runAt'],
    ['runAt as null', task({ runAt: null }), 'run_at_invalid', 'runAt'],
    ['a deadline in no format', task({ deadlineAt: 'soon' }), 'run_at_invalid', 'deadlineAt'],
    ['a deadline before runAt', task({ runAt: 2_000, deadlineAt: 2_000 }), 'request_invalid', 'deadlineAt'],
    ['runAt and delayMs', task({ runAt: 1, delayMs: 1 }), 'request_invalid', 'delayMs'],
    ['a negative delay', task({ delayMs: -1 }), 'request_invalid', 'delayMs'],
    ['a delay of a century', task({ delayMs: 3.2e12 }), 'request_invalid', 'delayMs'],
    ['an empty key', task({ idempotencyKey: '' }), 'request_invalid', 'idempotencyKey'],
    ['a key of 256 characters', task({ id: 'k'.repeat(256) }), 'request_invalid', 'id'],
    ['a key with NUL', task({ idempotencyKey: 'a\0' }), 'payload_has_nul', 'idempotencyKey'],
    ['half a surrogate pair in a key', task({ id: '\ud800' }), 'payload_has_invalid_unicode', 'id'],
    ['two keys', task({ id: 'a', idempotencyKey: 'b' }), 'request_invalid', 'idempotencyKey'],
    ['another tenant', task({ tenant: 'zeta' }), 'tenant_forbidden', 'tenant'],
    ['NUL in the payload', task({ payload: { a: [0, { b: 'x\0y' }] } }), 'payload_has_nul', 'payload.a[1].b'],
    ['NUL in a key of the payload', task({ payload: { a: { 'k\0': 1 } } }), 'payload_has_nul', 'payload.a'],
    [
      'half a surrogate pair',
      task({ payload: ['ok', '\udfff'] }),
      'payload_has_invalid_unicode',
      'payload[1]',
    ],
    ['half a pair in a key', task({ payload: { '\ud83d': 1 } }), 'payload_has_invalid_unicode', 'payload'],
    [
      'a number beyond double',
      task({ payload: { n: JSON.parse('1e999') } }),
      'payload_number_out_of_range',
      'payload.n',
    ],
    ['NaN', task({ payload: Number.NaN }), 'payload_number_out_of_range', 'payload'],
    [
      '__proto__ in the payload',
      JSON.parse('{"type":"t","payload":{"a":{"__proto__":{"x":1}}}}'),
      'payload_key_forbidden',
      'payload.a.__proto__',
    ],
    [
      '__proto__ beside the payload',
      JSON.parse('{"type":"t","payload":1,"__proto__":{"priority":1}}'),
      'payload_key_forbidden',
      '__proto__',
    ],
    ['nesting one too deep', task({ payload: nested(9) }), 'payload_too_deep', 'payload'],
    ['a bomb of brackets', task({ payload: nested(100_000) }), 'payload_too_deep', 'payload'],
    [
      'a bomb in a policy',
      task({ policy: { notRetryable: nested(100_000) } }),
      'request_invalid',
      'policy.notRetryable[0]',
    ],
    ['a cycle', task({ payload: cyclic }), 'payload_too_deep', 'payload'],
    ['a payload of one byte too many', task({ payload: 'x'.repeat(999) }), 'payload_too_large', 'payload'],
    [
      'a long payload of two-byte letters',
      task({ payload: 'é'.repeat(500) }),
      'payload_too_large',
      'payload',
    ],
    ['a hole in a list', task({ payload: [undefined] }), 'request_invalid', 'payload[0]'],
    [
      'an endless sparse list',
      task({ payload: Object.assign([], { length: 2 ** 32 - 1 }) }),
      'payload_too_large',
      'payload',
    ],
    ['a Date', task({ payload: { at: new Date(0) } }), 'request_invalid', 'payload.at'],
    ['a bigint', task({ payload: { n: 1n } }), 'request_invalid', 'payload.n'],
    ['a function', task({ payload: { f: () => 1 } }), 'request_invalid', 'payload.f'],
  ])('%s', (_, input, code, field) => {
    expect(refused(input)).toContainEqual({
      code,
      ...(field === undefined ? {} : { field }),
      message: expect.any(String),
    });
  });

  test('all that is wrong is reported at once', () => {
    const fields = refused({ type: 'a.b', priority: 9, payload: '\0', x: 1 }).map(({ field }) => field);
    expect(new Set(fields)).toEqual(new Set(['payload', 'priority', 'type', 'x']));
  });

  test('a reason can always be stored', () => {
    const input = JSON.parse('{"type":"\\ud800\\u0000","payload":{"\\ud800":"\\u0000"},"\\u0000\\udfff":1}');
    for (const { field = '', message } of refused(input)) {
      expect(`${field}${message}`).not.toContain('\0');
      expect(encodeURIComponent(`${field}${message}`)).toEqual(expect.any(String));
    }
  });
});

describe('what is accepted', () => {
  test('a minimal task gets a new UUID, priority 2 and no policy', () => {
    const submission = accepted({ type: 't', payload: null });
    expect(submission).toMatchObject({ tenant: 'acme', type: 't', payload: null, priority: 2 });
    expect(submission.policy).toBeUndefined();
    expect(submission.fingerprint).toBeUndefined();
    expect(isTaskId(submission.taskId)).toBe(true);
    expect(submission.taskId).not.toBe(accepted({ type: 't', payload: null }).taskId);
  });

  test.each([
    ['2026-01-31T09:30:00Z', Date.UTC(2026, 0, 31, 9, 30)],
    ['2026-01-31T09:30Z', Date.UTC(2026, 0, 31, 9, 30)],
    ['2026-01-31T09:30:00.250+05:30', Date.UTC(2026, 0, 31, 4, 0, 0, 250)],
    ['2024-02-29T23:59:59-01:00', Date.UTC(2024, 2, 1, 0, 59, 59)],
    [1_769_851_800_000, 1_769_851_800_000],
    [0, 0],
  ])('runAt %s', (runAt, ms) => {
    expect(accepted(task({ runAt })).runAt).toBe(ms);
  });

  test('delayMs counts from now', () => {
    expect(accepted(task({ delayMs: 1_500 })).runAt).toBe(NOW + 1_500);
  });

  test('a payload of exactly the limit, in depth and in bytes', () => {
    expect(accepted(task({ payload: nested(8) })).payload).toEqual(nested(8));
    expect(accepted(task({ payload: 'x'.repeat(998) })).payload).toHaveLength(998);
    expect(accepted(task({ payload: '\u{1f600}'.repeat(249) })).payload).toHaveLength(498);
  });

  test('members that are undefined are left out, as JSON does', () => {
    const one = accepted(task({ payload: { a: 1, b: undefined }, id: 'k' }));
    expect(one.fingerprint).toBe(accepted(task({ payload: { a: 1 }, id: 'k' })).fingerprint);
  });

  test('of two members with one name the last counts, as JSON.parse has it', () => {
    expect(accepted(JSON.parse('{"type":"t","payload":{"a":1,"a":2}}')).payload).toEqual({ a: 2 });
  });

  test("a task's policy goes over its type's, and only what differs from the default is kept", () => {
    const settingsOf = () => ({ type: 't', policy: { maxRetries: 9, timeoutMs: 5 }, priority: 3 });
    const submission = accepted(task({ policy: { timeoutMs: 900_000 } }), { settingsOf });
    expect(submission).toMatchObject({ priority: 3, policy: { maxRetries: 9 } });
    expect(accepted(task({ priority: 1 }), { settingsOf }).priority).toBe(1);
  });

  test('a key beside the input names the task as one inside does', () => {
    const beside = accepted(task({}), { key: 'order 17' });
    expect(beside).toMatchObject({
      idempotencyKey: 'order 17',
      taskId: accepted(task({ id: 'order 17' })).taskId,
    });
    expect(beside.taskId).not.toBe(accepted(task({ id: 'order 17' }), { tenant: 'zeta' }).taskId);
  });

  test('a derived id never changes', () => {
    expect(accepted(task({ id: 'order 17' })).taskId).toBe('5d5f2a98-8b80-5c90-8113-1df933c745f2');
  });
});

describe('of any JSON value', () => {
  const limits = { maxBytes: 2_000, maxDepth: 8 };
  const anyText = fc.oneof(
    fc.string({ unit: 'binary' }),
    fc.string(),
    fc.constantFrom('\0', '\ud800', '__proto__'),
  );
  const anyJson = fc.letrec((tie) => ({
    value: fc.oneof(
      { maxDepth: 12 },
      fc.constantFrom(null, true, Number.POSITIVE_INFINITY, -0, 2 ** 60),
      fc.double(),
      anyText,
      fc.array(tie('value'), { maxLength: 4 }),
      fc.array(fc.tuple(anyText, tie('value')), { maxLength: 4 }).map((entries) => {
        const made: Record<string, unknown> = {};
        for (const [key, value] of entries)
          Object.defineProperty(made, key, { value, enumerable: true, configurable: true, writable: true });
        return made;
      }),
    ),
  })).value;

  test('a payload is accepted and comes back from its JSON text unharmed, or is refused by the catalogue', () => {
    fc.assert(
      fc.property(anyJson, (payload) => {
        const parsed = parseSubmission({ type: 't', payload }, setup({ limits }));
        if (!parsed.ok) {
          expect(parsed.issues.length).toBeGreaterThan(0);
          for (const { code } of parsed.issues) expect(catalogue[code].status).toBeLessThan(500);
          return;
        }
        const text = JSON.stringify(parsed.submission.payload);
        expect(Buffer.byteLength(text)).toBeLessThanOrEqual(limits.maxBytes);
        expect(text).not.toMatch(/(?<!\\)(\\\\)*\\u0000|\\ud[89a-f]/);
        expect(canonicalJson(JSON.parse(text))).toBe(canonicalJson(payload));
      }),
      { numRuns: 3_000 },
    );
  });

  test('an input never makes the checks throw', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          anyJson,
          fc.record(
            { type: anyJson, payload: anyJson, id: anyJson, runAt: anyJson, policy: anyJson },
            { requiredKeys: [] },
          ),
        ),
        (input) => {
          const parsed = parseSubmission(input, setup({ limits }));
          if (!parsed.ok) expect(parsed.issues.length).toBeGreaterThan(0);
        },
      ),
      { numRuns: 3_000 },
    );
  });
});
