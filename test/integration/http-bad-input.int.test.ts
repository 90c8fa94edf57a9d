import { request } from 'node:http';
import { connect } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { catalogue, type ErrorCode } from '../../src/domain/errors.ts';
import { call, startApi } from '../support/api.ts';

const api = await startApi(import.meta.url, { config: { maxPayloadBytes: 10_000 } });
const { acme } = api.keys;
beforeAll(() => api.http.start());
afterAll(() => api.stop());

/** Nothing of this file may ever reach the log. */
let before: { readonly lastSeq: number };
beforeEach(async () => {
  before = await api.log.bounds();
});
afterEach(async () => {
  expect((await api.log.bounds()).lastSeq).toBe(before.lastSeq);
});

const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`;
const bytes = (...parts: (string | number)[]) =>
  Buffer.concat(parts.map((part) => (typeof part === 'string' ? Buffer.from(part) : Buffer.from([part]))));

describe('a body is refused with a code, a field, a fix and nothing written', () => {
  test.each<[string, string | Buffer, ErrorCode, string | undefined]>([
    ['no JSON', 'type=mail', 'payload_not_json', undefined],
    ['half of JSON', '{"type":"mail","payload":', 'payload_not_json', undefined],
    ['JSON with a comment', '{"type":"mail",/* */"payload":1}', 'payload_not_json', undefined],
    ['two documents', '{"type":"mail","payload":1}{}', 'payload_not_json', undefined],
    ['no UTF-8', bytes('{"type":"mail","payload":"', 0xff, '"}'), 'payload_not_json', undefined],
    [
      'a byte order mark',
      bytes(0xef, 0xbb, 0xbf, '{"type":"mail","payload":1}'),
      'payload_not_json',
      undefined,
    ],
    ['UTF-16', Buffer.from('{"type":"mail","payload":1}', 'utf16le'), 'payload_not_json', undefined],
    ['a raw NUL', '{"type":"mail","payload":"\0"}', 'payload_not_json', undefined],
    ['nothing', '', 'request_invalid', undefined],
    ['null', 'null', 'request_invalid', undefined],
    ['a list', '[{"type":"mail","payload":1}]', 'request_invalid', undefined],
    ['no payload', '{"type":"mail"}', 'request_invalid', 'payload'],
    ['an unknown field', '{"type":"mail","payload":1,"retries":3}', 'request_invalid', 'retries'],
    ['a type with a dot', '{"type":"mail.fast","payload":1}', 'name_invalid', 'type'],
    ['a wildcard as type', '{"type":">","payload":1}', 'name_invalid', 'type'],
    ['runAt in no format', '{"type":"mail","payload":1,"runAt":"next week"}', 'run_at_invalid', 'runAt'],
    ['an escaped NUL', '{"type":"mail","payload":{"a":["\\u0000"]}}', 'payload_has_nul', 'payload.a[0]'],
    ['an escaped NUL in a key', '{"type":"mail","payload":{"\\u0000":1}}', 'payload_has_nul', 'payload'],
    ['a lone surrogate', '{"type":"mail","payload":"\\ud83d"}', 'payload_has_invalid_unicode', 'payload'],
    ['a number beyond double', '{"type":"mail","payload":-1e999}', 'payload_number_out_of_range', 'payload'],
    [
      '__proto__ inside',
      '{"type":"mail","payload":{"__proto__":{"a":1}}}',
      'payload_key_forbidden',
      'payload.__proto__',
    ],
    [
      '__proto__ outside',
      '{"type":"mail","payload":1,"__proto__":{"priority":1}}',
      'payload_key_forbidden',
      '__proto__',
    ],
    ['nesting one too deep', `{"type":"mail","payload":${nested(65)}}`, 'payload_too_deep', 'payload'],
    ['a bomb of brackets', `{"type":"mail","payload":${nested(40_000)}}`, 'payload_too_deep', 'payload'],
    [
      'a bomb of objects',
      `{"type":"mail","payload":${'{"a":'.repeat(15_000)}1${'}'.repeat(15_000)}}`,
      'payload_too_deep',
      'payload',
    ],
    ['a bomb outside', nested(40_000), 'request_invalid', undefined],
    [
      'a payload over the limit',
      `{"type":"mail","payload":"${'x'.repeat(9_999)}"}`,
      'payload_too_large',
      'payload',
    ],
    [
      'a body over the limit',
      `{"type":"mail","payload":"${'x'.repeat(96_000)}"}`,
      'payload_too_large',
      'body',
    ],
    [
      'a missing tenant of its own',
      '{"type":"mail","payload":1,"tenant":"zeta"}',
      'tenant_forbidden',
      'tenant',
    ],
    ['a tenant with a dot', '{"type":"mail","payload":1,"tenant":"ac.me"}', 'name_invalid', 'tenant'],
  ])('%s', async (_, body, code, field) => {
    const answer = await call(api.http, 'POST', '/v1/tasks', { key: acme, body });
    expect(answer.status).toBe(catalogue[code].status);
    expect(answer.body.error).toMatchObject({
      code,
      ...(field === undefined ? {} : { field }),
      message: expect.stringMatching(/\S/),
      fix: expect.stringMatching(/\S/),
      retryable: false,
      requestId: answer.headers['x-request-id'],
      doc: `/errors/${code}`,
    });
    expect(answer.body.error.message).not.toMatch(/\{\w+\}/);
  });

  test('nothing has polluted the prototype of objects', () => {
    expect(({} as { a?: unknown }).a).toBeUndefined();
    expect(({} as { priority?: unknown }).priority).toBeUndefined();
  });

  test('several faults are listed together', async () => {
    const body = { type: 'A', payload: '\0', priority: 7 };
    const answer = await call(api.http, 'POST', '/v1/tasks', { key: acme, body });
    expect(answer.body.error.reasons.map(({ field }: { field: string }) => field).sort()).toEqual([
      'payload',
      'priority',
      'type',
    ]);
  });
});

test('a body that is announced to be over the limit is refused before it is sent', async () => {
  const answer = await new Promise<{ status: number; text: string }>((resolve, reject) => {
    const sending = request(`${api.http.url}/v1/tasks`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${acme}`,
        'content-type': 'application/json',
        'content-length': 50_000_000,
      },
    });
    sending.on('response', (response) => {
      response.setEncoding('utf8');
      let text = '';
      response.on('data', (chunk: string) => {
        text += chunk;
      });
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, text });
        sending.destroy();
      });
    });
    sending.on('error', reject);
    // The headers alone; the body never follows.
    sending.flushHeaders();
  });
  expect(answer.status).toBe(413);
  expect(JSON.parse(answer.text).error.code).toBe('payload_too_large');
});

describe('a request that is wrong in other ways', () => {
  test.each<[string, 'GET' | 'POST' | 'PUT' | 'DELETE', string, ErrorCode]>([
    ['an unknown route', 'GET', '/v1/jobs', 'route_not_found'],
    ['an unknown version', 'POST', '/v2/tasks', 'route_not_found'],
    ['another method', 'DELETE', '/v1/tasks', 'method_not_allowed'],
    [
      'another method on a task',
      'PUT',
      '/v1/tasks/0197b1f0-0000-7000-8000-000000000000',
      'method_not_allowed',
    ],
    ['an id that is no UUID', 'GET', '/v1/tasks/17', 'request_invalid'],
    ['a wildcard as id', 'GET', '/v1/tasks/*', 'request_invalid'],
    ['dots in an id', 'POST', '/v1/tasks/a.b.c/cancel', 'request_invalid'],
    ['a broken escape in the path', 'GET', '/v1/tasks/%zz', 'request_invalid'],
    ['an unknown parameter', 'GET', '/v1/tasks?stauts=QUEUED', 'request_invalid'],
    ['an unknown status', 'GET', '/v1/tasks?status=DONE', 'request_invalid'],
    ['a limit of 0', 'GET', '/v1/tasks?limit=0', 'request_invalid'],
    ['a limit of a million', 'GET', '/v1/tasks?limit=1000000', 'request_invalid'],
    ['a type with a dot', 'GET', '/v1/tasks?type=a.b', 'name_invalid'],
    ['a time in no format', 'GET', '/v1/tasks?submittedFrom=yesterday', 'run_at_invalid'],
    ['a NUL in a parameter', 'GET', '/v1/tasks?worker=a%00b', 'payload_has_nul'],
    ['a wait for no number', 'GET', '/v1/queues?wait=soon', 'request_invalid'],
    ['a type name with a dot', 'GET', '/v1/types/a.b', 'name_invalid'],
  ])('%s', async (_, method, url, code) => {
    const answer = await call(api.http, method, url, { key: acme });
    expect(answer.body?.error?.code).toBe(code);
    expect(answer.status).toBe(catalogue[code].status);
  });

  test('405 says what is allowed', async () => {
    const answer = await call(api.http, 'DELETE', '/v1/tasks', { key: acme });
    expect(String(answer.headers['allow']).split(', ').sort()).toEqual(['GET', 'HEAD', 'POST']);
  });

  test.each([
    'text/plain',
    'application/x-www-form-urlencoded',
    'application/xml',
    'multipart/form-data; boundary=x',
  ])('content type %s is 415', async (type) => {
    const answer = await call(api.http, 'POST', '/v1/tasks', {
      key: acme,
      body: '{}',
      headers: { 'content-type': type },
    });
    expect(answer.status).toBe(415);
    expect(answer.body.error.code).toBe('unsupported_media_type');
  });

  test.each([
    ['an unknown field', { reasons: 'x' }, 'request_invalid'],
    ['a NUL in the reason', { reason: 'a\0' }, 'payload_has_nul'],
    ['a reason that is no text', { reason: [] }, 'request_invalid'],
  ])('cancelling with %s', async (_, body, code) => {
    const url = '/v1/tasks/0197b1f0-0000-7000-8000-000000000000/cancel';
    const answer = await call(api.http, 'POST', url, { key: acme, body });
    expect(answer.body.error.code).toBe(code);
  });

  test('bytes that are no HTTP at all are answered in the same form', async () => {
    const { port, hostname } = new URL(api.http.url);
    const text = await new Promise<string>((resolve, reject) => {
      const socket = connect(Number(port), hostname, () => socket.write('HELLO\r\n\r\n'));
      let received = '';
      socket.on('data', (chunk) => {
        received += chunk.toString();
      });
      socket.on('close', () => resolve(received));
      socket.on('error', reject);
    });
    expect(text).toContain('400 Bad Request');
    expect(text).toContain('"code":"request_invalid"');
  });
});
