import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createWorker, type Worker } from '../../src/index.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { eventually } from '../support/eventually.ts';
import { type Installation, startInstallation, TYPE } from '../support/installation.ts';
import { recordingLogger } from '../support/read-models.ts';
import {
  connectTestNats,
  createTestDatabase,
  type TestDatabase,
  testNamespace,
  testNatsUrl,
} from '../support/servers.ts';

const prefix = testNamespace(import.meta.url);
const names = namesOf(prefix);
const ROLES = ['projector', 'dispatcher', 'api'];
/** Beyond the 15 s for which nothing may be claimed. */
const RED_WITHIN_MS = 60_000;

let nc: NatsConnection;
let database: TestDatabase;
let installation: Installation;
let worker: Worker;
/** Where each process tells of its health, by its role. */
const addresses = new Map<string, string>();

beforeAll(async () => {
  [nc, database] = await Promise.all([connectTestNats(), createTestDatabase(import.meta.url)]);
  installation = await startInstallation(
    {
      NATS_URL: testNatsUrl(),
      DATABASE_URL: database.url,
      TASKLEDGER_PREFIX: prefix,
      TASKLEDGER_HEALTH_PORT: '0',
    },
    ROLES,
  );
  for (const [role, each] of installation.roles) {
    const { port } = await each.logged('health and metrics are served', 60_000);
    addresses.set(role, `http://127.0.0.1:${String(port)}/readyz`);
  }
  const logger = recordingLogger();
  process.env['TASKLEDGER_HEALTH_PORT'] = '0';
  worker = createWorker({ nats: testNatsUrl(), prefix, types: { [TYPE]: () => 'done' }, logger });
  delete process.env['TASKLEDGER_HEALTH_PORT'];
  await worker.start();
  const port = logger.lines.find(({ message }) => message.startsWith('health'))?.fields['port'];
  addresses.set('worker', `http://127.0.0.1:${String(port)}/readyz`);
});
afterAll(async () => {
  await worker?.stop();
  await installation?.stop();
  await database?.drop();
  await nc?.close();
});

interface Health {
  readonly ready: boolean;
  readonly checks: Readonly<Record<string, { readonly ok: boolean; readonly detail?: string }>>;
}
const healthOf = async (role: string): Promise<Health> => {
  const response = await fetch(addresses.get(role) ?? '');
  const health = (await response.json()) as Health;
  expect(response.status).toBe(health.ready ? 200 : 503);
  return health;
};
const bad = ({ checks }: Health) => Object.fromEntries(Object.entries(checks).filter(([, { ok }]) => !ok));

/** Of every process, and what the API says at its own address. */
const allGreen = (): Promise<unknown> =>
  eventually(
    async () => {
      for (const role of addresses.keys()) expect([role, bad(await healthOf(role))]).toEqual([role, {}]);
      expect((await installation.get('/healthz?deep')).status).toBe(200);
    },
    { timeoutMs: RED_WITHIN_MS },
  );

test('every process turns red while ready work is given to nobody though workers have room, and green when it is', async () => {
  await installation.submit();
  await eventually(() => expect(installation.count('COMPLETED')).toBe(1), { timeoutMs: 30_000 });
  await allGreen();
  const jsm = await jetstreamManager(nc);
  const [stream, consumer] = [names.streams.tasks, names.workConsumer(TYPE)];
  await jsm.consumers.pause(stream, consumer, new Date(Date.now() + 10 * RED_WITHIN_MS));
  for (let n = 0; n < 3; n += 1) await installation.submit();

  const why = expect.stringMatching(/^3 tasks of errand are ready and none was claimed for \d+ s/);
  await eventually(
    async () => {
      for (const role of addresses.keys())
        expect([role, bad(await healthOf(role))]).toEqual([role, { flow: { ok: false, detail: why } }]);
    },
    { timeoutMs: RED_WITHIN_MS },
  );
  expect((await installation.get('/healthz?deep')).status).toBe(503);
  // It can still accept tasks.
  expect((await installation.get('/readyz')).status).toBe(200);

  await jsm.consumers.resume(stream, consumer);
  await eventually(() => expect(installation.count('COMPLETED')).toBe(4), { timeoutMs: 30_000 });
  await allGreen();
});

test('every process turns red while a stream or what it draws from is gone, says which, and green when it is back', async () => {
  const jsm = await jetstreamManager(nc);
  const timers = (await jsm.streams.info(names.streams.timers)).config;
  await jsm.streams.delete(names.streams.timers);
  const gone = { streams: { ok: false, detail: `${names.streams.timers} is gone` } };
  await eventually(
    async () => {
      for (const role of addresses.keys()) expect([role, bad(await healthOf(role))]).toEqual([role, gone]);
    },
    { timeoutMs: RED_WITHIN_MS },
  );
  expect((await installation.get('/healthz?deep')).status).toBe(503);
  await jsm.streams.add(timers);
  await allGreen();
});
