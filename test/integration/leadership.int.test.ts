import { jetstream } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { afterEach, expect, it } from 'vitest';
import { Leadership } from '../../src/log/leadership.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { eventually } from '../support/eventually.ts';
import { hardOfHearing } from '../support/hard-of-hearing.ts';
import { connectTestNats, testNamespace } from '../support/servers.ts';

/** Of a leader that is alone. */
const LEASE_MS = 600;
/** Of leaders that must not lose it, however long the machine holds them up. */
const LONG_LEASE_MS = 4_000;
const bucket = `${testNamespace(import.meta.url)}leaders`;
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) await stop();
});

async function candidate(
  owner: string,
  {
    key = 'dispatcher.default',
    deafTo,
    leaseMs = LEASE_MS,
    asked,
  }: {
    readonly key?: string;
    readonly deafTo?: string;
    readonly leaseMs?: number;
    readonly asked?: Map<string, number>;
  } = {},
) {
  const connection = await connectTestNats({ name: owner });
  const nc: NatsConnection = deafTo === undefined ? connection : hardOfHearing(connection, deafTo, asked);
  await new Kvm(jetstream(connection)).create(bucket);
  const leadership = new Leadership({
    nc,
    bucket,
    key,
    owner,
    leaseMs,
    logger: silentLogger,
    onChange: () => {},
  });
  stops.push(async () => {
    await leadership.stop();
    await nc.close();
  });
  return { leadership, die: () => nc.close() };
}

it('who has looked before waits for a dead leader no longer than the lease, however long it took to get ready', async () => {
  const leader = await candidate('first', { leaseMs: LONG_LEASE_MS });
  await leader.leadership.start();
  expect(leader.leadership.holds()).toBe(true);
  await leader.die();
  const next = await candidate('second', { leaseMs: LONG_LEASE_MS });
  await next.leadership.look();
  const lookedAt = performance.now();
  await eventually(() => performance.now() - lookedAt > LONG_LEASE_MS, { intervalMs: 50 });
  await next.leadership.start();
  expect(next.leadership.holds()).toBe(true);
});

it('who has looked before does not take the lead from a leader that renews', async () => {
  const leader = await candidate('third', { leaseMs: LONG_LEASE_MS });
  await leader.leadership.start();
  await eventually(() => leader.leadership.holds());
  const next = await candidate('fourth', { leaseMs: LONG_LEASE_MS });
  await next.leadership.look();
  const lookedAt = performance.now();
  await eventually(() => performance.now() - lookedAt > 1.5 * LONG_LEASE_MS, { intervalMs: 50 });
  await next.leadership.start();
  expect(next.leadership.holds()).toBe(false);
  expect(leader.leadership.holds()).toBe(true);
});

it('who starts while questions get no answer comes to lead all the same', async () => {
  const next = await candidate('fifth', { key: 'dispatcher.other', deafTo: '$JS.API.' });
  await next.leadership.look();
  await next.leadership.start();
  await eventually(() => next.leadership.holds());
});

it('asks again soon when an answer is missing, however long the lease', async () => {
  const asked = new Map<string, number>();
  const next = await candidate('sixth', {
    key: 'dispatcher.long',
    deafTo: '$JS.API.STREAM.MSG.GET.',
    leaseMs: 120_000,
    asked,
  });
  await next.leadership.start();
  expect(next.leadership.holds()).toBe(false);
  await eventually(() => next.leadership.holds(), { timeoutMs: 20_000 });
  expect([...asked.values()]).toEqual([2]);
});
