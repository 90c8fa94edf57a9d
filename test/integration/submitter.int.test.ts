import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { createSubmitter, type Submitter } from '../../src/intake/submitter.ts';
import { defineTask } from '../../src/worker/define-task.ts';
import { startApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { testNatsUrl } from '../support/servers.ts';

const api = await startApi(import.meta.url);
const { names, log, registry } = api;
let submitter: Submitter;
beforeAll(async () => {
  await registry.types.put({ type: 'slow', policy: { maxRetries: 7 } });
  submitter = await createSubmitter({
    nats: testNatsUrl(),
    tenant: 'acme',
    prefix: names.prefix,
    name: 'cms',
  });
});
afterAll(async () => {
  await submitter.close();
  await api.stop();
});

const kindsOf = async (id: string) => (await log.readTask('acme', id)).map(({ event }) => event.kind);

test('a typed task goes straight to the log, by the rules of its type', async () => {
  const slow = defineTask({ type: 'slow', payload: z.object({ clip: z.string() }) });
  const outcome = await submitter.submit(slow.submission({ clip: 'a.mov' }, { priority: 1 }));
  if (!outcome.ok) throw outcome.error;
  const [{ event } = { event: undefined }] = await log.readTask('acme', outcome.id);
  expect(event).toMatchObject({
    kind: 'INGESTED',
    actor: { kind: 'intake', id: 'cms' },
    priority: 1,
    data: { payload: { clip: 'a.mov' }, policy: { maxRetries: 7 } },
  });
});

test('the same key over any way is the same task', async () => {
  const first = await submitter.submit({ type: 'mail', payload: 1 }, { key: 'k-1' });
  const again = await api.intake.submit(
    'acme',
    { type: 'mail', payload: 1, id: 'k-1' },
    { actor: { kind: 'user', id: 'u' } },
  );
  expect(again).toEqual({ ...first, replayed: true });
});

test('what is invalid is refused and nothing is written', async () => {
  const { lastSeq } = await log.bounds();
  const outcomes = await submitter.submitBatch([
    { type: 'a.b', payload: 1 },
    { type: 'mail', payload: { at: new Date() } },
    { type: 'mail', payload: '\ud800' },
  ]);
  expect(outcomes.map((outcome) => (outcome.ok ? 'ok' : outcome.error.code))).toEqual([
    'name_invalid',
    'request_invalid',
    'payload_has_invalid_unicode',
  ]);
  expect((await log.bounds()).lastSeq).toBe(lastSeq);
});

test('ten thousand tasks at once arrive, each once', async () => {
  const outcomes = await submitter.submitBatch(
    Array.from({ length: 10_000 }, (_, n) => ({ type: 'bulk', payload: n })),
  );
  expect(outcomes.filter(({ ok }) => !ok)).toEqual([]);
  const seqs = new Set(outcomes.map((outcome) => (outcome.ok ? outcome.seq : 0)));
  expect(seqs.size).toBe(10_000);
  const [one] = outcomes;
  expect(one?.ok && (await kindsOf(one.id))).toEqual(['INGESTED']);
});

describe('a full type', () => {
  test('is refused here too', async () => {
    await registry.types.put({ type: 'tiny', maxBacklog: 3 });
    await eventually(async () => {
      api.nc.publish(names.backlog, JSON.stringify({ waiting: { tiny: 3 } }));
      const outcome = await submitter.submit({ type: 'tiny', payload: 1 });
      expect(outcome).toMatchObject({ ok: false, error: { code: 'backlog_full', retryable: true } });
    });
  });
});

test('a tenant with too much waiting is refused here too', async () => {
  await registry.tenants.put({ name: 'acme', createdAt: new Date().toISOString(), maxBacklog: 3 });
  await eventually(async () => {
    api.nc.publish(names.backlog, JSON.stringify({ waiting: {}, tenants: { acme: 3 } }));
    const outcome = await submitter.submit({ type: 'mail', payload: 'one more' });
    expect(outcome).toMatchObject({
      ok: false,
      error: { code: 'tenant_backlog_full', details: { tenant: 'acme', waiting: 3, limit: 3 } },
    });
  });
});

test('servers that are not there are named', async () => {
  await expect(
    createSubmitter({ nats: 'nats://127.0.0.1:1', tenant: 'acme', prefix: names.prefix }),
  ).rejects.toMatchObject({ code: 'nats_unreachable' });
});
