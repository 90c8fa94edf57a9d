import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { call, startApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

const api = await startApi(import.meta.url, { config: { httpRatePerSecond: 20, maxBacklog: 100 } });
afterAll(() => api.stop());

describe('one key over its rate', () => {
  test('gets 429 with Retry-After, while another key is served', async () => {
    const key = await api.keyOf('acme', ['read']);
    const answers = await Promise.all(
      Array.from({ length: 400 }, () => call(api.http, 'GET', '/v1/types', { key })),
    );
    const limited = answers.filter(({ status }) => status === 429);
    // More than it gets in any time that they may take.
    expect(limited.length).toBeGreaterThan(0);
    expect(limited[0]?.body.error).toMatchObject({ code: 'rate_limited', retryable: true });
    expect(limited[0]?.headers).toMatchObject({
      'retry-after': '1',
      'ratelimit-limit': '20',
      'ratelimit-remaining': '0',
    });
    expect((await call(api.http, 'GET', '/v1/types', { key: api.keys.zeta })).status).toBe(200);
    await eventually(async () =>
      expect((await call(api.http, 'GET', '/v1/types', { key })).status).toBe(200),
    );
  });
});

describe('a full type', () => {
  const announce = (waiting: Record<string, number>) =>
    api.nc.publish(api.names.backlog, JSON.stringify({ waiting }));
  const statusOf = async (type: string) => {
    const key = await api.keyOf('acme', ['submit']);
    return call(api.http, 'POST', '/v1/tasks', { key, body: { type, payload: 1 } });
  };
  afterEach(async () => {
    announce({});
    await eventually(() => expect(api.backlog.full('mail')).toBeUndefined());
  });

  test('is refused with 429 from its limit on until 80 % of it; other types are not', async () => {
    announce({ mail: 100, letter: 99 });
    await eventually(() => expect(api.backlog.full('mail')).toBeDefined());
    const { status, headers, body } = await statusOf('mail');
    expect(status).toBe(429);
    expect(headers['retry-after']).toBe('2');
    expect(body.error).toMatchObject({
      code: 'backlog_full',
      retryable: true,
      details: { type: 'mail', waiting: 100, limit: 100 },
    });
    expect((await statusOf('letter')).status).toBe(201);

    announce({ mail: 81 });
    await eventually(() => expect(api.backlog.waiting('mail')).toBe(81));
    expect((await statusOf('mail')).status).toBe(429);
    announce({ mail: 80 });
    await eventually(() => expect(api.backlog.waiting('mail')).toBe(80));
    expect((await statusOf('mail')).status).toBe(201);
  });

  test('may have a limit of its own', async () => {
    await api.registry.types.put({ type: 'tiny', maxBacklog: 5 });
    announce({ tiny: 5 });
    await eventually(() => expect(api.backlog.full('tiny')).toMatchObject({ limit: 5 }));
    expect((await statusOf('tiny')).status).toBe(429);
  });

  test('fails its own tasks of a batch only', async () => {
    announce({ mail: 100 });
    await eventually(() => expect(api.backlog.full('mail')).toBeDefined());
    const key = await api.keyOf('acme', ['submit']);
    const body = [
      { type: 'mail', payload: 1 },
      { type: 'letter', payload: 1 },
    ];
    const answer = await call(api.http, 'POST', '/v1/tasks/batch', { key, body });
    expect(answer.body.results).toEqual([
      expect.objectContaining({ ok: false, error: expect.objectContaining({ code: 'backlog_full' }) }),
      expect.objectContaining({ ok: true }),
    ]);
  });
});
