import { randomUUID } from 'node:crypto';
import { jetstream } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DEMO_TENANT } from '../../deploy/dev/keys.ts';
import { type Names, names as namesOf } from '../../src/log/subjects.ts';
import { eventually } from '../support/eventually.ts';
import { contradictions, type Installation, startInstallation, TYPE } from '../support/installation.ts';
import type { NodeProcess } from '../support/node-process.ts';
import {
  connectTestNats,
  createTestDatabase,
  type TestDatabase,
  testNamespace,
  testNatsUrl,
} from '../support/servers.ts';
import { TYPE as LONG_TYPE } from '../support/task-world.ts';
import { spawnWorker, type WorkerProcess } from '../support/worker-rig.ts';

/** By each door. Work is always under way, and two cores that run everything, and other tests, keep up with it. */
const PER_SECOND = 50;
const BATCH = 500;
const GRACE_MS = 30_000;

let database: TestDatabase;
let installation: Installation;
let nc: NatsConnection;
let names: Names;
let endLoad: () => Promise<void>;
let publishing: NodeJS.Timeout;
/** Tasks that were published to the gateway, once JetStream has them. */
const published = new Set<string>();
const workerOptions = () => ({
  nats: testNatsUrl(),
  prefix: installation.config.prefix,
  ackWaitMs: installation.config.ackWaitMs,
  concurrency: 10,
});

beforeAll(async () => {
  database = await createTestDatabase(import.meta.url);
  nc = await connectTestNats();
  const prefix = testNamespace(import.meta.url);
  names = namesOf(prefix);
  installation = await startInstallation(
    {
      NATS_URL: testNatsUrl(),
      DATABASE_URL: database.url,
      TASKLEDGER_PREFIX: prefix,
      TASKLEDGER_SHUTDOWN_GRACE_MS: String(GRACE_MS),
      TASKLEDGER_ACK_WAIT_MS: '5000',
    },
    ['dispatcher', 'projector', 'api'],
  );
  endLoad = installation.load(PER_SECOND);
  publishing = setInterval(() => void publish(), 1_000 / PER_SECOND);
});
afterAll(async () => {
  clearInterval(publishing);
  await installation?.stop();
  await nc?.close();
  await database?.drop();
});

async function publish(): Promise<void> {
  const id = randomUUID();
  const body = JSON.stringify({ id, payload: { id } });
  await jetstream(nc).publish(names.submit(DEMO_TENANT, TYPE), body);
  published.add(id);
}

/** Answers `undefined` when nobody was there to be asked. */
async function submitBatch(): Promise<{ status: number; ids: string[]; accepted: string[] } | undefined> {
  const ids = Array.from({ length: BATCH }, () => randomUUID());
  const tasks = ids.map((id) => ({ type: TYPE, payload: { id }, id, tenant: DEMO_TENANT }));
  const { url, headers } = installation;
  const response = await fetch(`${url}/v1/tasks/batch`, {
    method: 'POST',
    headers,
    body: JSON.stringify(tasks),
  }).catch(() => undefined);
  if (response === undefined) return undefined;
  const { results = [] } = (await response.json()) as { results?: { ok: boolean; id?: string }[] };
  const accepted = results.flatMap(({ ok, id }) => (ok && id !== undefined ? [id] : []));
  return { status: response.status, ids, accepted };
}

async function untilWorkFlows(): Promise<void> {
  const before = installation.count('COMPLETED');
  await eventually(() => installation.count('COMPLETED') > before + 50, { timeoutMs: 60_000 });
}

/** Told to stop in the middle of its work, it ends well, and so in time: at the end of its grace it would end with exit code 1. */
async function stopWell(process_: Pick<NodeProcess, 'stop'>): Promise<void> {
  expect(await process_.stop('SIGTERM')).toBe(0);
}

const roleNamed = (role: string): NodeProcess => {
  const found = installation.roles.get(role);
  if (found === undefined) throw new Error(`${role} does not run`);
  return found;
};

describe('under load', () => {
  test.each(['dispatcher', 'projector'])(
    'the %s stops within its grace, and its successor goes on',
    async (role) => {
      await untilWorkFlows();
      await stopWell(roleNamed(role));
      await installation.restart(role);
      await untilWorkFlows();
    },
  );

  test('the API stops within its grace; a batch that it has begun is answered as a whole, one that it has not leaves nothing', async () => {
    await untilWorkFlows();
    const batches = Array.from({ length: 8 }, () => submitBatch());
    await stopWell(roleNamed('api'));
    const answers = await Promise.all(batches);
    await installation.restart('api');
    for (const answer of answers) {
      if (answer?.status === 200) expect(answer.accepted).toEqual(answer.ids);
      else for (const id of answer?.ids ?? []) expect(installation.book.has(id)).toBe(false);
    }
    await untilWorkFlows();
  });

  test('a worker stops within its grace, and what it held is done by another', async () => {
    const workers: WorkerProcess[] = [];
    const spawn = async () => workers.push(await spawnWorker({ ...workerOptions(), shutdownGraceMs: 1_000 }));
    await spawn();
    const work = { type: LONG_TYPE, payload: { do: 'wait', ms: 3_000 } };
    const quick = { type: LONG_TYPE, payload: { do: 'wait', ms: 300 } };
    await Promise.all([work, quick, work, quick, quick].map((each) => installation.submit(each)));
    await workers[0]?.printed(/^started /);
    await spawn();
    const [first, second] = workers;
    await first?.kill('SIGTERM');
    expect(await first?.exited).toBe(0);
    await eventually(
      () => {
        const long = [...installation.book.values()].filter(([begin]) => begin?.event.type === LONG_TYPE);
        expect(long).toHaveLength(5);
        for (const events of long) expect(events.at(-1)?.event.kind).toBe('COMPLETED');
      },
      { timeoutMs: 60_000 },
    );
    await second?.kill('SIGTERM');
    expect(await second?.exited).toBe(0);
  });

  test('all roles in one process stop within the grace, and a new process goes on', async () => {
    for (const role of ['api', 'dispatcher', 'projector']) await stopWell(roleNamed(role));
    await installation.restart('all');
    await untilWorkFlows();
    await stopWell(roleNamed('all'));
    await installation.restart('all');
    await untilWorkFlows();
  });
});

test('nothing that was acknowledged is lost, by whichever door it came, and nothing is done twice', async () => {
  clearInterval(publishing);
  await endLoad();
  await eventually(
    () => {
      expect(installation.count('COMPLETED')).toBe(installation.count('INGESTED'));
      expect(contradictions(installation)).toEqual([]);
      expect([...published].filter((id) => !installation.book.has(id))).toEqual([]);
    },
    { timeoutMs: 90_000, intervalMs: 500 },
  );
  expect(published.size).toBeGreaterThan(100);
});
