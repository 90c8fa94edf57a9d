import { randomUUID } from 'node:crypto';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { createInbox, headers } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createGateway } from '../../src/intake/gateway.ts';
import { taskIdOfKey } from '../../src/intake/identity.ts';
import { receive } from '../../src/intake/receipt.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { startApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

const api = await startApi(import.meta.url);
const { nc, names, intake, registry, log } = api;
const js = jetstream(nc);
const jsm = await jetstreamManager(nc);
let full: { type: string; waiting: number; limit: number } | undefined;
const fullTenants = new Set<string>();
const listeners: (() => void)[] = [];
const gatewayOptions = {
  nc,
  names,
  intake,
  tenants: registry.tenants,
  maxParked: 32_768,
  logger: silentLogger,
  backlog: {
    anyFull: () => full,
    fullTenant: (tenant: string) => (fullTenants.has(tenant) ? { tenant, waiting: 9, limit: 9 } : undefined),
    onOpen: (listener: () => void) => listeners.push(listener),
  },
};
const gateway = createGateway(gatewayOptions);
beforeAll(() => gateway.start());
afterAll(async () => {
  await gateway.stop();
  await api.stop();
});

/** Publishes a submission and waits for the answer in its inbox. */
async function submit(subject: string, body: unknown, extra: Record<string, string> = {}) {
  const inbox = createInbox();
  const answers = nc.subscribe(inbox, { max: 1, timeout: 60_000 });
  await publish(subject, body, { ...extra, 'Taskledger-Reply': inbox });
  for await (const answer of answers)
    return answer.json<Record<string, unknown> & { id: string; seq: number }>();
  throw new Error('no answer');
}

async function publish(subject: string, body: unknown, extra: Record<string, string> = {}) {
  const hdrs = headers();
  for (const [name, value] of Object.entries(extra)) hdrs.set(name, value);
  const data = typeof body === 'string' || body instanceof Uint8Array ? body : JSON.stringify(body);
  return js.publish(subject, data, { headers: hdrs });
}

const kindsOf = async (id: string, tenant = 'acme') =>
  (await log.readTask(tenant, id)).map(({ event }) => event.kind);
const pending = async () => (await jsm.streams.info(names.streams.submissions)).state.messages;

describe('a submission by message', () => {
  test('becomes a task of the tenant and type that its subject names', async () => {
    const answer = await submit(names.submit('acme', 'mail'), { payload: { to: 'a' }, priority: 3 });
    expect(answer).toEqual({
      ok: true,
      id: expect.any(String),
      status: 'INGESTED',
      seq: expect.any(Number),
      replayed: false,
    });
    const [{ event } = { event: undefined }] = await log.readTask('acme', answer.id);
    expect(event).toMatchObject({ kind: 'INGESTED', type: 'mail', priority: 3, actor: { kind: 'intake' } });
    await eventually(async () => expect(await pending()).toBe(0));
  });

  test('with a key is the same task as one with that key over any other way', async () => {
    const direct = await intake.submit(
      'acme',
      { type: 'mail', payload: 1, id: 'shared' },
      { actor: { kind: 'user', id: 'u' } },
    );
    const answer = await submit(
      names.submit('acme', 'mail'),
      { payload: 1 },
      { 'Idempotency-Key': 'shared' },
    );
    expect(answer).toEqual({ ...direct, ok: true, replayed: true });
  });

  test('that is redelivered makes no second task', async () => {
    const twin = createGateway(gatewayOptions);
    const inbox = createInbox();
    const answers = nc.subscribe(inbox, { max: 2, timeout: 60_000 });
    // The same stored message is handed out twice: once to each of two calls of the same code.
    await gateway.stop();
    await publish(names.submit('acme', 'mail'), { payload: 'again' }, { 'Taskledger-Reply': inbox });
    const consumer = await js.consumers.get(names.streams.submissions, 'intake');
    const delivery = await consumer.next({ expires: 30_000 });
    expect(delivery).not.toBeNull();
    if (delivery === null) return;
    const first = await receive(
      delivery,
      { tenant: 'acme', type: 'mail' },
      { intake, tenants: registry.tenants },
    );
    delivery.nak();
    await twin.start();
    for await (const answer of answers) {
      expect(answer.json()).toEqual({ ...first.answer, replayed: true });
      break;
    }
    expect(await kindsOf(first.taskId)).toEqual(['INGESTED']);
    await twin.stop();
    await gateway.start();
  });

  test("carries none of the submitter's Nats headers into the log", async () => {
    const answer = await submit(
      names.submit('acme', 'mail'),
      { payload: 1 },
      { 'Nats-TTL-Mine': '1', 'X-Own': '1' },
    );
    const message = await jsm.streams.getMessage(names.streams.tasks, { seq: answer.seq });
    expect([...(message?.header?.keys() ?? [])].filter((name) => /own|ttl/i.test(name))).toEqual([]);
  });

  test('is answered in an inbox only', async () => {
    const secret = nc.subscribe(names.feed('acme', 'mail', randomUUID(), 'completed'), { max: 1 });
    const id = randomUUID();
    await publish(
      names.submit('acme', 'mail'),
      { payload: 1, id },
      { 'Taskledger-Reply': secret.getSubject() },
    );
    await eventually(async () => expect(await kindsOf(id)).toEqual(['INGESTED']));
    await nc.flush();
    expect(secret.getReceived()).toBe(0);
    secret.unsubscribe();
  });
});

describe('an invalid submission', () => {
  test('is REJECTED under its own key, with every reason', async () => {
    const answer = await submit(names.submit('acme', 'mail'), {
      payload: 'a\0b',
      priority: 9,
      id: 'bad-1',
      extra: 1,
    });
    const id = taskIdOfKey('acme', 'bad-1');
    expect(answer).toMatchObject({ ok: false, id, seq: expect.any(Number) });
    const [{ event } = { event: undefined }] = await log.readTask('acme', id);
    expect(event?.kind).toBe('REJECTED');
    expect(event?.data).toEqual({
      reasons: expect.arrayContaining([
        { code: 'payload_has_nul', field: 'payload', message: expect.any(String) },
        { code: 'request_invalid', field: 'priority', message: expect.any(String) },
        { code: 'request_invalid', field: 'extra', message: 'Unknown field extra' },
      ]),
    });
  });

  test.each([
    ['no JSON', '{oops', 'payload_not_json'],
    ['no UTF-8', new Uint8Array([0x22, 0xff, 0x22]), 'payload_not_json'],
    ['no object', '[1]', 'request_invalid'],
    ['a type other than the subject', { type: 'other', payload: 1 }, 'request_invalid'],
    ['a tenant other than the subject', { tenant: 'zeta', payload: 1 }, 'tenant_forbidden'],
    ['a bomb of brackets', `{"payload":${'['.repeat(100_000)}${']'.repeat(100_000)}}`, 'payload_too_deep'],
    ['half a surrogate pair in an unknown field', '{"payload":1,"\\ud800":1}', 'request_invalid'],
  ])('with %s is REJECTED', async (_, body, code) => {
    const answer = await submit(names.submit('acme', 'mail'), body);
    expect(answer).toMatchObject({ ok: false, error: { code } });
    expect(await kindsOf(answer.id)).toEqual(['REJECTED']);
    expect(JSON.stringify(await log.readTask('acme', answer.id))).not.toMatch(/\\ud8|\\u0000/i);
  });

  test('of an unknown tenant is REJECTED under that name', async () => {
    const answer = await submit(names.submit('nobody', 'mail'), { payload: 1 });
    expect(answer).toMatchObject({ ok: false, error: { code: 'tenant_unknown' } });
    expect(await kindsOf(answer.id, 'nobody')).toEqual(['REJECTED']);
  });

  test('under a key that names a task leaves that task alone', async () => {
    const id = randomUUID();
    await submit(names.submit('acme', 'mail'), { payload: 1, id });
    const other = await submit(names.submit('acme', 'mail'), { payload: 2, id });
    expect(other).toMatchObject({ ok: false, error: { code: 'idempotency_conflict' }, seq: null });
    const broken = await submit(names.submit('acme', 'mail'), { id });
    expect(broken).toMatchObject({ ok: false, error: { code: 'request_invalid', field: 'payload' } });
    expect(await kindsOf(id)).toEqual(['INGESTED']);
  });

  test.each(['acme', 'acme.Mail', 'acme.mail.more'])('to submit.%s is dropped and counted', async (tail) => {
    const before = gateway.stats()['misaddressed'] ?? 0;
    await publish(`${names.prefix}submit.${tail}`, { payload: 1 });
    await eventually(() => expect(gateway.stats()['misaddressed']).toBe(before + 1));
    await eventually(async () => expect(await pending()).toBe(0));
  });
});

test('a consumer that somebody deleted is made again, and nothing is lost', async () => {
  const ids = Array.from({ length: 50 }, () => randomUUID());
  await Promise.all(ids.slice(0, 25).map((id) => publish(names.submit('acme', 'mail'), { payload: 1, id })));
  await jsm.consumers.delete(names.streams.submissions, 'intake');
  await Promise.all(ids.slice(25).map((id) => publish(names.submit('acme', 'mail'), { payload: 1, id })));
  await eventually(
    async () => {
      const kinds = await Promise.all(ids.map((id) => kindsOf(id)));
      expect(kinds.filter((found) => found.join() !== 'INGESTED')).toEqual([]);
    },
    { timeoutMs: 60_000, intervalMs: 200 },
  );
});

test('two gateways share a thousand submissions and none is lost or doubled', async () => {
  const twin = createGateway(gatewayOptions);
  await twin.start();
  const ids = Array.from({ length: 1_000 }, () => randomUUID());
  await Promise.all(ids.map((id) => publish(names.submit('acme', 'bulk'), { payload: id, id })));
  await eventually(async () => expect(await pending()).toBe(0), { timeoutMs: 60_000 });
  await twin.stop();
  const kinds = await Promise.all(ids.map((id) => kindsOf(id)));
  expect(kinds.filter((found) => found.join() !== 'INGESTED')).toEqual([]);
});

test('while a type is full nothing is pulled; when it opens, what waited is taken', async () => {
  full = { type: 'mail', waiting: 100, limit: 100 };
  // The message that makes the gateway look is still taken.
  await submit(names.submit('acme', 'mail'), { payload: 'look' });
  const id = randomUUID();
  await eventually(async () =>
    expect((await jsm.consumers.info(names.streams.submissions, 'intake')).num_waiting).toBe(0),
  );
  await publish(names.submit('acme', 'mail'), { payload: 1, id });
  expect(await kindsOf(id)).toEqual([]);
  expect(await pending()).toBe(1);
  full = undefined;
  for (const open of listeners) open();
  await eventually(async () => expect(await kindsOf(id)).toEqual(['INGESTED']));
});

test('a tenant whose own backlog is full waits, and no other tenant waits with it', async () => {
  fullTenants.add('zeta');
  const [parked, taken] = [randomUUID(), randomUUID()];
  await publish(names.submit('zeta', 'mail'), { payload: 1, id: parked });
  await submit(names.submit('acme', 'mail'), { payload: 1, id: taken });
  await eventually(() => expect(gateway.stats()['parked']).toBeGreaterThan(0));
  expect(await kindsOf(taken)).toEqual(['INGESTED']);
  expect(await kindsOf(parked, 'zeta')).toEqual([]);
  fullTenants.clear();
  await eventually(async () => expect(await kindsOf(parked, 'zeta')).toEqual(['INGESTED']), {
    timeoutMs: 20_000,
  });
});
