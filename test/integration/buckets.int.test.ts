import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createBucketKeeper } from '../../src/log/bucket-keeper.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { createStreamsCheck } from '../../src/log/streams-check.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { eventually } from '../support/eventually.ts';
import { connectTestNats, testNamespace } from '../support/servers.ts';

let nc: NatsConnection;
let jsm: JetStreamManager;
beforeAll(async () => {
  nc = await connectTestNats();
  jsm = await jetstreamManager(nc, { checkAPI: false });
});
afterAll(() => nc.close());

async function setup(suffix: string) {
  const names = namesOf(`${testNamespace(import.meta.url)}${suffix}_`);
  const config = { ...loadConfig({}), leaderLeaseMs: 50 };
  await ensureStreams({ nc, names, config, logger: silentLogger });
  const keeper = createBucketKeeper({ nc, names, config, logger: silentLogger });
  const check = createStreamsCheck({ nc, names, needed: Object.values(names.buckets) });
  const { buckets, streams } = names;
  return {
    buckets,
    keeper,
    drop: (...lost: string[]) => Promise.all(lost.map((bucket) => jsm.streams.delete(`KV_${bucket}`))),
    dropLog: () => jsm.streams.delete(streams.tasks),
    gone: async () => (await check.look()).troubles,
  };
}

test('buckets that hold facts of the moment are made again once they have been gone for a lease', async () => {
  const { buckets, keeper, drop, gone } = await setup('moment');
  const { leaders, workers, rates } = buckets;
  expect(await keeper.runOnce()).toEqual([]);
  await drop(leaders, workers, rates);
  expect(await gone()).toEqual([workers, leaders, rates].map((name) => `KV_${name} is gone`));
  expect(await keeper.runOnce()).toEqual([]);
  expect(await keeper.runOnce()).toEqual([leaders, workers, rates]);
  expect(await gone()).toEqual([]);

  await drop(leaders);
  await keeper.start();
  await eventually(async () => expect(await gone()).toEqual([]));
  await keeper.stop();
});

test('what an operator has set is told to be gone, and never made again empty', async () => {
  const { buckets, keeper, drop, gone } = await setup('set');
  const { leaders: _leaders, workers: _workers, rates: _rates, ...set } = buckets;
  await drop(...Object.values(set));
  for (let n = 0; n < 3; n++) expect(await keeper.runOnce()).toEqual([]);
  expect(await gone()).toEqual(Object.values(set).map((name) => `KV_${name} is gone`));
});

test('nothing is made while the log is gone', async () => {
  const { buckets, keeper, drop, dropLog } = await setup('log');
  await drop(buckets.leaders);
  await dropLog();
  for (let n = 0; n < 3; n++) expect(await keeper.runOnce()).toEqual([]);
});
