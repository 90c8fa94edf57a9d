import { Kvm } from '@nats-io/kv';
import { afterAll, describe, expect, test } from 'vitest';
import { SHARE_MS } from '../../src/intake/rates/shared-rate.ts';
import { createSubmitter } from '../../src/intake/submitter.ts';
import { call, startApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { testNatsUrl } from '../support/servers.ts';

/** A process that waited less would keep the rates alone whenever the machine is busy. */
const config = { ratesAnswerMs: 30_000 };
const one = await startApi(import.meta.url, { config });
const other = await startApi(import.meta.url, { config });
afterAll(async () => {
  await other.stop();
  await one.stop();
});

let made = 0;
/** A tenant of its own, known to both processes. */
async function tenantWith(settings: object) {
  made += 1;
  const name = `rated${made}`;
  await one.registry.tenants.put({ name, createdAt: new Date().toISOString(), ...settings });
  const key = await one.keyOf(name, ['submit']);
  await eventually(() => {
    expect(other.registry.tenants.get(name)).toBeDefined();
    expect(other.registry.keys.verify(key)).toBeDefined();
  });
  return { name, key };
}
const submit = (api: typeof one, key: string, type = 'mail') =>
  call(api.http, 'POST', '/v1/tasks', { key, body: { type, payload: 1 } });

describe('a rate of submission', () => {
  test('holds over two API processes together: no more than the rate, the burst and a share of each', async () => {
    // So slow that any machine submits faster.
    const rate = { ratePerSecond: 2, burst: 20 };
    const { key } = await tenantWith({ submission: rate });
    const startedAt = performance.now();
    const statuses: number[] = [];
    while (performance.now() - startedAt < 1_500) {
      const answers = await Promise.all(
        [one, other].flatMap((api) => Array.from({ length: 20 }, () => submit(api, key))),
      );
      statuses.push(...answers.map(({ status }) => status));
    }
    const elapsedMs = performance.now() - startedAt;
    const accepted = statuses.filter((status) => status === 201).length;
    expect(accepted).toBeGreaterThanOrEqual(rate.burst);
    const share = Math.max(1, (rate.ratePerSecond * SHARE_MS) / 1_000);
    expect(accepted).toBeLessThanOrEqual(rate.burst + (rate.ratePerSecond * elapsedMs) / 1_000 + 2 * share);
    expect(new Set(statuses)).toEqual(new Set([201, 429]));
  });

  test('over it a submission is told whose rate it is, when to come again and what to do', async () => {
    const { name, key } = await tenantWith({ submission: { ratePerSecond: 0.01, burst: 1 } });
    expect((await submit(one, key)).status).toBe(201);
    const { status, headers, body } = await submit(other, key);
    expect(status).toBe(429);
    expect(Number(headers['retry-after'])).toBeGreaterThanOrEqual(50);
    // 100 s, and a second by which what two processes know of the servers' time may differ.
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(101);
    expect(headers).toMatchObject({ 'ratelimit-limit': '0.01', 'ratelimit-remaining': '0' });
    expect(headers['ratelimit-reset']).toBe(headers['retry-after']);
    expect(body.error).toMatchObject({
      code: 'submission_rate_limited',
      retryable: true,
      message: expect.stringContaining(`Tenant ${name} may submit 0.01 tasks a second`),
      fix: expect.stringContaining('taskledger tenant set'),
      details: { tenant: name, limit: 0.01, burst: 1 },
    });
  });

  test('fails what is over it in a batch, and the batch says when to come again', async () => {
    const { key } = await tenantWith({ types: { mail: { submission: { ratePerSecond: 0.01, burst: 2 } } } });
    const body = ['mail', 'mail', 'mail', 'letter'].map((type) => ({ type, payload: 1 }));
    const answer = await call(one.http, 'POST', '/v1/tasks/batch', { key, body });
    expect(answer.status).toBe(200);
    expect(answer.body.results.map((result: { ok: boolean }) => result.ok)).toEqual([
      true,
      true,
      false,
      true,
    ]);
    expect(answer.body.results[2].error.code).toBe('submission_rate_limited');
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(50);
  });

  test('holds for submitters that write straight to the log as well', async () => {
    const { name, key } = await tenantWith({ submission: { ratePerSecond: 0.01, burst: 3 } });
    const submitter = await createSubmitter({
      nats: testNatsUrl(),
      tenant: name,
      prefix: one.names.prefix,
      config,
    });
    const outcomes = await submitter.submitBatch(
      Array.from({ length: 5 }, () => ({ type: 'mail', payload: 1 })),
    );
    await submitter.close();
    expect(outcomes.filter(({ ok }) => ok)).toHaveLength(3);
    expect((await submit(one, key)).status).toBe(429);
  });

  test('is kept by each process alone while the shared bucket is gone, and submission goes on', async () => {
    const { key } = await tenantWith({ submission: { ratePerSecond: 0.01, burst: 2 } });
    const bucket = await new Kvm(one.nc).open(one.names.buckets.rates);
    await bucket.destroy();
    const statuses = await Promise.all(
      [one, one, one, other, other, other].map(async (api) => (await submit(api, key)).status),
    );
    expect(statuses.sort((a, b) => a - b)).toEqual([201, 201, 201, 201, 429, 429]);
  });
});
