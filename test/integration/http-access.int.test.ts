import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { call, startApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

const api = await startApi(import.meta.url);
const { acme, zeta, operator } = api.keys;
let second: Awaited<ReturnType<typeof startApi>>;
beforeAll(async () => {
  second = await startApi(import.meta.url);
});
afterAll(async () => {
  await second.stop();
  await api.stop();
});

const task = { type: 'mail', payload: 1 };
const post = (key: string | undefined, body: object = task, over = api) =>
  call(over.http, 'POST', '/v1/tasks', { key, body });

describe('without a key that is known', () => {
  test.each([
    '/v1/tasks',
    '/v1/queues',
    '/v1/types',
    '/metrics',
    '/v1/tasks/0197b1f0-0000-7000-8000-000000000000',
  ])('%s answers 401', async (url) => {
    const answer = await call(api.http, 'GET', url);
    expect(answer.status).toBe(401);
    expect(answer.body.error.code).toBe('key_missing');
    expect(answer.headers['www-authenticate']).toBe('Bearer');
  });

  const [, id = ''] = acme.split('_');
  test.each([
    ['not of this form', 'secret'],
    ['of an unknown id', `tl_${'0'.repeat(16)}_${'A'.repeat(43)}`],
    ['with another secret', `tl_${id}_${'A'.repeat(43)}`],
    ['cut short', acme.slice(0, -1)],
    ['followed by more', `${acme}A`],
  ])('a key %s answers 401', async (_, key) => {
    const answer = await post(key);
    expect(answer.status).toBe(401);
    expect(answer.body.error.code).toBe('key_invalid');
  });

  test('another scheme answers 401', async () => {
    const answer = await call(api.http, 'GET', '/v1/tasks', { headers: { authorization: `Basic ${acme}` } });
    expect(answer.body.error.code).toBe('key_invalid');
  });

  test.each(['/healthz', '/readyz', '/docs/json', '/errors/backlog_full'])('%s answers', async (url) => {
    expect((await call(api.http, 'GET', url)).status).toBe(200);
  });
});

describe('scopes', () => {
  test('a key does what its scopes say, and admin implies all', async () => {
    const reader = await api.keyOf('acme', ['read']);
    const submitter = await api.keyOf('acme', ['submit']);
    const admin = await api.keyOf('acme', ['admin']);
    const status = async (key: string) => [
      (await post(key)).status,
      (await call(api.http, 'GET', '/v1/tasks', { key })).status,
      (await call(api.http, 'GET', '/v1/keys', { key })).status,
    ];
    expect(await status(reader)).toEqual([403, 200, 403]);
    expect(await status(submitter)).toEqual([201, 403, 403]);
    expect(await status(admin)).toEqual([201, 200, 200]);
  });

  test("a tenant's admin cannot change what all tenants share", async () => {
    const key = await api.keyOf('acme', ['admin']);
    for (const [method, url, body, code] of [
      ['PUT', '/v1/types/mail', {}, 'operator_only'],
      ['PUT', '/v1/tenants/other', {}, 'operator_only'],
      ['GET', '/v1/projections', undefined, 'operator_only'],
      ['POST', '/v1/keys', { tenant: '*', scopes: ['admin'], name: 'x' }, 'operator_only'],
      ['POST', '/v1/keys', { tenant: 'zeta', scopes: ['read'], name: 'x' }, 'tenant_forbidden'],
    ] as const) {
      const answer = await call(api.http, method, url, { key, body });
      expect(answer.status).toBe(403);
      expect(answer.body.error.code).toBe(code);
    }
  });

  test("a tenant's admin hears that a route is for operators, and how to get their key", async () => {
    const key = await api.keyOf('acme', ['admin']);
    const { error } = (await call(api.http, 'GET', '/v1/projections', { key })).body;
    expect(error.message).toBe("This is for operators' keys: the API key is of tenant acme only");
    expect(error.fix).toContain('key create NAME --tenant "*"');
  });
});

describe("an operator's key", () => {
  test('submits for the tenant that the task names', async () => {
    const { status, body } = await post(operator, { ...task, tenant: 'zeta' });
    expect(status).toBe(201);
    expect(await api.log.readTask('zeta', body.id)).toHaveLength(1);
  });

  test('must name a tenant that exists', async () => {
    expect((await post(operator)).body.error).toMatchObject({ code: 'request_invalid', field: 'tenant' });
    expect((await post(operator, { ...task, tenant: 'nobody' })).body.error.code).toBe('tenant_unknown');
  });

  test('makes tenants and keys, which work at once', async () => {
    await call(api.http, 'PUT', '/v1/tenants/fresh', { key: operator, body: { displayName: 'Fresh Ltd' } });
    const made = await call(api.http, 'POST', '/v1/keys', {
      key: operator,
      body: { tenant: 'fresh', scopes: ['submit'], name: 'ci' },
    });
    expect(made.status).toBe(201);
    expect((await post(made.body.key)).status).toBe(201);
    const listed = await call(api.http, 'GET', '/v1/keys?tenant=fresh', { key: operator });
    expect(listed.body.keys).toEqual([
      {
        id: made.body.id,
        tenant: 'fresh',
        scopes: ['submit'],
        name: 'ci',
        createdAt: expect.any(String),
        revokedAt: null,
      },
    ]);
    expect(listed.text).not.toContain(made.body.key.split('_')[2]);
  });
});

describe('tenants are apart', () => {
  test("another tenant's task can be neither cancelled nor replaced", async () => {
    const { body } = await post(acme, { ...task, id: 'mine' });
    expect((await call(api.http, 'POST', `/v1/tasks/${body.id}/cancel`, { key: zeta })).status).toBe(404);
    expect((await post(zeta, { type: 'mail', payload: 'other', id: body.id })).status).toBe(201);
    expect(await api.log.readTask('acme', body.id)).toHaveLength(1);
  });

  test('another tenant cannot be named', async () => {
    for (const url of ['/v1/tasks?tenant=acme', '/v1/queues?tenant=acme'])
      expect((await call(api.http, 'GET', url, { key: zeta })).body.error.code).toBe('tenant_forbidden');
  });

  test("another tenant's key can be neither seen nor revoked", async () => {
    const key = await api.keyOf('zeta', ['admin']);
    const [, id] = acme.split('_');
    const answer = await call(api.http, 'DELETE', `/v1/keys/${id}`, { key });
    expect(answer.status).toBe(404);
    expect((await post(acme)).status).toBe(201);
  });
});

describe('revocation', () => {
  test('holds at once here and within moments in another process', async () => {
    const key = await api.keyOf('acme', ['submit']);
    const [, id] = key.split('_');
    await eventually(async () => expect((await post(key, task, second)).status).toBe(201));
    const revoked = await call(api.http, 'DELETE', `/v1/keys/${id}`, { key: operator });
    expect(revoked.status).toBe(204);
    expect((await post(key)).body.error.code).toBe('key_invalid');
    await eventually(async () => expect((await post(key, task, second)).status).toBe(401), {
      timeoutMs: 2_000,
    });
  });
});
