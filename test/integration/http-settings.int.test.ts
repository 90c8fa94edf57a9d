import { afterAll, expect, test } from 'vitest';
import { call, startApi } from '../support/api.ts';

const api = await startApi(import.meta.url);
afterAll(() => api.stop());

const { operator } = api.keys;
const as = (method: 'GET' | 'PUT' | 'PATCH', url: string, body?: object, key = operator) =>
  call(api.http, method, url, { key, ...(body === undefined ? {} : { body }) });

test('a patch of a tenant changes what it names and drops nothing else; null removes', async () => {
  await as('PUT', '/v1/tenants/acme', {
    displayName: 'Acme',
    limits: { concurrency: 10, ratePerSecond: 5 },
    types: { mail: { weight: 3 } },
  });
  const { status, body } = await as('PATCH', '/v1/tenants/acme', {
    weight: 2,
    limits: { concurrency: null },
    types: { index: { submission: { ratePerSecond: 1 } } },
  });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    name: 'acme',
    displayName: 'Acme',
    weight: 2,
    types: { mail: { weight: 3 }, index: { submission: { ratePerSecond: 1 } } },
  });
  expect(body.limits).toEqual({ ratePerSecond: 5 });
  expect((await as('GET', '/v1/tenants/acme')).body).toEqual(body);
  expect((await as('GET', '/v1/tenants/acme', undefined, api.keys.acme)).body).toEqual(body);
});

test('a patch of a type changes what it names, in its policy too', async () => {
  await as('PUT', '/v1/types/render', { priority: 3, policy: { maxRetries: 7, timeoutMs: 1_000 } });
  const { body } = await as('PATCH', '/v1/types/render', {
    policy: { timeoutMs: 2_000, backoff: { kind: 'fixed', baseMs: 5 } },
    submission: { ratePerSecond: 2, burst: 9 },
  });
  expect(body).toMatchObject({
    priority: 3,
    policy: { maxRetries: 7, timeoutMs: 2_000, backoff: { kind: 'fixed', baseMs: 5 } },
    submission: { ratePerSecond: 2, burst: 9 },
    effectivePolicy: { maxRetries: 7, timeoutMs: 2_000 },
  });
  expect((await as('PATCH', '/v1/types/render', { policy: null })).body.policy).toBeUndefined();
});

test('many patches at once are all kept', async () => {
  const names = Array.from({ length: 12 }, (_, n) => `t${n}`);
  await Promise.all(
    names.map((name, n) => as('PATCH', '/v1/tenants/zeta', { types: { [name]: { weight: n + 1 } } })),
  );
  const { body } = await as('GET', '/v1/tenants/zeta');
  expect(Object.keys(body.types).sort()).toEqual(names.sort());
});

test('a patch that makes no valid settings changes nothing and names the field', async () => {
  const before = (await as('GET', '/v1/tenants/zeta')).body;
  const wrong = await as('PATCH', '/v1/tenants/zeta', { weigth: 2 });
  expect(wrong).toMatchObject({ status: 400, body: { error: { field: 'weigth' } } });
  const unfit = await as('PATCH', '/v1/tenants/zeta', { submission: { ratePerSecond: 1, burst: 100_000 } });
  expect(unfit).toMatchObject({ status: 400, body: { error: { code: 'request_invalid' } } });
  expect((await as('GET', '/v1/tenants/zeta')).body).toEqual(before);
  expect(await as('PATCH', '/v1/tenants/nobody', { weight: 2 })).toMatchObject({
    status: 404,
    body: { error: { code: 'tenant_unknown' } },
  });
  expect((await as('PATCH', '/v1/tenants/acme', { weight: 9 }, api.keys.acme)).status).toBe(403);
});
