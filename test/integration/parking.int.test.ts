import { randomUUID } from 'node:crypto';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { createInbox, headers, nanos } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { TaskledgerError } from '../../src/domain/errors.ts';
import { createGateway } from '../../src/intake/gateway.ts';
import { INTAKE_CONSUMER } from '../../src/intake/intake-consumer.ts';
import { issue } from '../../src/intake/issue.ts';
import { refused } from '../../src/intake/outcome.ts';
import { turnAway } from '../../src/intake/turn-away.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { startApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

/** Well above what one gateway works on at once, so that most of what is counted waits. */
const LIMIT = 1_500;
/** More than the consumer delivers without an ack. */
const FLOOD = 4_000;
const MODEST = 20;

const api = await startApi(import.meta.url);
const { nc, names, intake, registry, log } = api;
const js = jetstream(nc);
const jsm = await jetstreamManager(nc);
const fullTenants = new Set<string>();
/** Of whose type no more tasks may wait for a time. */
const delayedFull = new Set<string>();
const noMoreLater = refused([issue('delayed_full', { type: 'mail', waiting: 9, limit: 9 })]);
const gatewayOptions = {
  nc,
  names,
  intake: {
    ...intake,
    submit: async (...asked: Parameters<typeof intake.submit>) =>
      delayedFull.has(asked[0]) ? noMoreLater : intake.submit(...asked),
  },
  tenants: registry.tenants,
  maxParked: LIMIT,
  logger: silentLogger,
  backlog: {
    anyFull: () => undefined,
    fullTenant: (tenant: string) => (fullTenants.has(tenant) ? { tenant, waiting: 9, limit: 9 } : undefined),
    onOpen: () => undefined,
  },
};
const gateway = createGateway(gatewayOptions);
beforeAll(async () => {
  for (const name of ['flood', 'modest', 'calm'])
    await registry.tenants.put({ name, createdAt: new Date().toISOString() });
  await gateway.start();
});
afterAll(async () => {
  await gateway.stop();
  await api.stop();
});

interface Answer {
  readonly ok: boolean;
  readonly id: string;
  readonly seq: number;
  readonly error?: { readonly code: string; readonly message: string };
}

/** Sends submissions under these keys, and keeps what is answered. */
async function send(tenant: string, keys: readonly string[]) {
  const inbox = createInbox();
  const answers: Answer[] = [];
  const subscription = nc.subscribe(inbox, {
    callback: (_error, message) => void answers.push(message.json<Answer>()),
  });
  const sendOne = (key: string) => {
    const hdrs = headers();
    hdrs.set('Idempotency-Key', key);
    hdrs.set('Taskledger-Reply', inbox);
    return js.publish(names.submit(tenant, 'mail'), '{"payload":1}', { headers: hdrs });
  };
  for (let i = 0; i < keys.length; i += 500) await Promise.all(keys.slice(i, i + 500).map(sendOne));
  return { answers, stop: () => subscription.unsubscribe() };
}

const keysOf = (count: number): string[] => Array.from({ length: count }, () => randomUUID());
const stored = async () => (await jsm.streams.info(names.streams.submissions)).state.messages;

test('a full tenant that floods is refused from the limit on; another full one waits, and the others are served', async () => {
  fullTenants.add('flood').add('modest');
  const flood = await send('flood', keysOf(FLOOD));
  const modest = await send('modest', keysOf(MODEST));

  // Behind the whole flood in SUBMISSIONS, and taken while the flood's tenant is as full as it was.
  const calm = await send('calm', keysOf(MODEST));
  await eventually(() => expect(calm.answers).toHaveLength(MODEST), { timeoutMs: 60_000 });
  expect(calm.answers.filter(({ ok }) => !ok)).toEqual([]);
  expect(modest.answers).toEqual([]);

  const [refused] = flood.answers;
  expect(refused).toMatchObject({
    ok: false,
    error: { code: 'tenant_backlog_full', message: expect.stringMatching(/limit is 9.*send this one again/) },
  });
  const [rejected] = await log.readTask('flood', refused?.id ?? '');
  expect(rejected).toMatchObject({
    seq: refused?.seq,
    event: { kind: 'REJECTED', data: { reasons: [{ code: 'tenant_backlog_full' }] } },
  });

  fullTenants.clear();
  await eventually(async () => expect(await stored()).toBe(0), { timeoutMs: 90_000, intervalMs: 100 });
  await nc.flush();
  expect(modest.answers).toHaveLength(MODEST);
  expect(modest.answers.filter(({ ok }) => !ok)).toEqual([]);
  // Every message was answered: taken, or refused for this reason and no other.
  expect(new Set(flood.answers.map(({ id }) => id)).size).toBe(FLOOD);
  const codes = new Set(flood.answers.map(({ error }) => error?.code));
  expect(codes).toEqual(new Set([undefined, 'tenant_backlog_full']));
  expect(gateway.stats()['tenant_backlog_full']).toBe(flood.answers.filter(({ ok }) => !ok).length);
  for (const sent of [flood, modest, calm]) sent.stop();
}, 240_000);

test('so is one that floods with tasks for later when no more of them may wait', async () => {
  delayedFull.add('flood');
  const flood = await send('flood', keysOf(FLOOD));
  const calm = await send('calm', keysOf(MODEST));
  await eventually(() => expect(calm.answers).toHaveLength(MODEST), { timeoutMs: 60_000 });
  expect(calm.answers.filter(({ ok }) => !ok)).toEqual([]);
  expect(flood.answers[0]).toMatchObject({ ok: false, error: { code: 'delayed_full' } });

  delayedFull.clear();
  await eventually(async () => expect(await stored()).toBe(0), { timeoutMs: 90_000, intervalMs: 100 });
  await nc.flush();
  const codes = new Set(flood.answers.map(({ error }) => error?.code));
  expect(codes).toEqual(new Set([undefined, 'delayed_full']));
  for (const { stop } of [flood, calm]) stop();
}, 240_000);

test('a refused message whose ack was lost is acked when it comes again, and nothing more; its key may be used again', async () => {
  await gateway.stop();
  const [key = ''] = keysOf(1);
  const sent = await send('flood', [key]);
  const delivery = await (await js.consumers.get(names.streams.submissions, INTAKE_CONSUMER)).next();
  if (delivery === null) throw new Error('nothing was delivered');
  const full = new TaskledgerError('tenant_backlog_full', { tenant: 'flood', waiting: 9, limit: 9 });
  const refused = await turnAway(delivery, { tenant: 'flood', type: 'mail' }, full, gatewayOptions);
  delivery.nak();

  await gateway.start();
  await eventually(() => expect(sent.answers).toEqual([refused?.answer]));
  await eventually(async () => expect(await stored()).toBe(0));
  const kindsOf = async (id: string) => (await log.readTask('flood', id)).map(({ event }) => event.kind);
  expect(await kindsOf(refused?.taskId ?? '')).toEqual(['REJECTED']);
  expect(await kindsOf(key)).toEqual([]);

  const again = await send('flood', [key]);
  await eventually(() => expect(again.answers).toMatchObject([{ ok: true, id: key }]));
  for (const { stop } of [sent, again]) stop();
});

test('a gateway gives the consumer that is there its own limit, and leaves the rest as an operator has set it', async () => {
  await gateway.stop();
  const { submissions } = names.streams;
  await jsm.consumers.update(submissions, INTAKE_CONSUMER, { max_ack_pending: 7, ack_wait: nanos(20_000) });
  await gateway.start();
  const { config } = await jsm.consumers.info(submissions, INTAKE_CONSUMER);
  expect(config).toMatchObject({ max_ack_pending: 2 * LIMIT, ack_wait: nanos(20_000) });
});
