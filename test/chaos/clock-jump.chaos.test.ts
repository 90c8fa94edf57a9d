import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Kvm } from '@nats-io/kv';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { names as namesOf } from '../../src/log/subjects.ts';
import { connectNats } from '../../src/platform/nats.ts';
import type { WorkerEntry } from '../../src/worker/worker-entry.ts';
import { eventually } from '../support/eventually.ts';
import { contradictions, type Installation, startInstallation } from '../support/installation.ts';
import { createTestDatabase, type TestDatabase, testNamespace, testNatsUrl } from '../support/servers.ts';
import { TYPE as WORK } from '../support/task-world.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { spawnWorker, type WorkerProcess } from '../support/worker-rig.ts';

const HOUR_MS = 3_600_000;
const ACK_WAIT_MS = 4_000;
const DELAY_MS = 2_000;

let dir: string;
let database: TestDatabase;
let proxy: TcpProxy;
let installation: Installation;
let worker: WorkerProcess;

/** Every process of the installation, workers too, has a wall clock that is off by what the file says. */
const clockFile = () => join(dir, 'clock');
async function setClocks(offsetMs: number): Promise<void> {
  await writeFile(`${clockFile()}.new`, String(offsetMs));
  await rename(`${clockFile()}.new`, clockFile());
}

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'clock-jump-'));
  await setClocks(0);
  const nats = new URL(testNatsUrl());
  [database, proxy] = await Promise.all([
    createTestDatabase(import.meta.url),
    startTcpProxy({ host: nats.hostname, port: Number(nats.port) }),
  ]);
  nats.port = String(proxy.port);
  const clock = {
    JUMPING_CLOCK: clockFile(),
    NODE_OPTIONS: `--require ${fileURLToPath(new URL('../support/jumping-clock.cjs', import.meta.url))}`,
  };
  const prefix = testNamespace(import.meta.url);
  installation = await startInstallation(
    {
      ...clock,
      NATS_URL: nats.href,
      DATABASE_URL: database.url,
      TASKLEDGER_PREFIX: prefix,
      TASKLEDGER_ACK_WAIT_MS: String(ACK_WAIT_MS),
      TASKLEDGER_LEADER_LEASE_MS: '3000',
      TASKLEDGER_RECONCILE_MS: '500',
    },
    ['dispatcher', 'projector', 'api'],
  );
  worker = await spawnWorker({ nats: nats.href, prefix, ackWaitMs: ACK_WAIT_MS, concurrency: 50 }, clock);
});
afterAll(async () => {
  await worker?.kill();
  await installation?.stop();
  await proxy?.close();
  await database?.drop();
  await rm(dir, { recursive: true, force: true });
});

async function submitted(over: Readonly<Record<string, unknown>>): Promise<string> {
  const told = await installation.submit({ type: WORK, ...over });
  if (told.kind !== 'accepted') throw new Error(`not accepted: ${JSON.stringify(told)}`);
  return told.taskId;
}

/** By how much the time that the worker shows of itself, from its lease thread, is ahead of the true one. */
async function displayedLead(): Promise<number> {
  const nc = await connectNats({ ...installation.config, natsUrl: testNatsUrl() }, 'clock look-up');
  try {
    const registry = await new Kvm(nc).open(namesOf(installation.config.prefix).buckets.workers);
    const entry = await registry.get(worker.id);
    return (entry?.json<WorkerEntry>().seenAt ?? Number.NaN) - Date.now();
  } finally {
    await nc.close();
  }
}

const kindsOf = (id: string) => (installation.book.get(id) ?? []).map(({ event }) => event.kind);
const storedAt = (id: string, kind: string) =>
  installation.book.get(id)?.find(({ event }) => event.kind === kind)?.storedAt ?? Number.NaN;

const ONE_ATTEMPT = ['INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'COMPLETED'];

describe.each([
  { jump: 'is put on an hour', from: 0, to: HOUR_MS },
  { jump: 'is put back two hours', from: HOUR_MS, to: -HOUR_MS },
])('when the clock of the host $jump', ({ from, to }) => {
  test('leases, timeouts, deadlines and delays stay as they were, and lost connections come back', async () => {
    await setClocks(from);
    const long = { payload: { do: 'wait', ms: 3 * ACK_WAIT_MS } };
    const running = await Promise.all([
      submitted(long),
      submitted({ ...long, policy: { timeoutMs: 10 * ACK_WAIT_MS } }),
      submitted({ ...long, deadlineAt: new Date(Date.now() + HOUR_MS / 2).toISOString() }),
    ]);
    await eventually(
      () => expect(running.map((id) => kindsOf(id).at(-1))).toEqual(running.map(() => 'PROCESSING')),
      { timeoutMs: 60_000 },
    );
    const endLoad = installation.load(20);
    const delayedBefore = await submitted({ payload: { do: 'echo' }, delayMs: DELAY_MS });
    await setClocks(to);
    await eventually(async () => expect(Math.abs((await displayedLead()) - to)).toBeLessThan(60_000));
    const echo = { payload: { do: 'echo' } };
    const delayed = await submitted({ ...echo, delayMs: DELAY_MS });
    const inTime = await submitted({
      ...echo,
      deadlineAt: new Date(Date.now() + HOUR_MS / 2).toISOString(),
    });
    const tooLate = await submitted({ ...long, deadlineAt: new Date(Date.now() + 2_000).toISOString() });

    // A client that measures its pauses by the wall clock would not come back for an hour.
    proxy.cut();
    await eventually(() => expect(proxy.connections()).toBe(0));
    proxy.pass();
    await eventually(() => expect(kindsOf(inTime).at(-1)).toBe('COMPLETED'), { timeoutMs: 60_000 });
    await eventually(() => expect(kindsOf(tooLate).at(-1)).toBe('DEAD_LETTER'), { timeoutMs: 60_000 });
    await endLoad();
    await eventually(
      () =>
        expect([...running, delayed, delayedBefore].map(kindsOf)).toEqual(
          Array.from({ length: running.length + 2 }, () => ONE_ATTEMPT),
        ),
      { timeoutMs: 60_000 },
    );
    for (const id of [delayed, delayedBefore]) {
      const [ingested] = installation.book.get(id) ?? [];
      const waitedMs = storedAt(id, 'QUEUED') - (ingested?.event.at ?? Number.NaN);
      expect(waitedMs).toBeGreaterThanOrEqual(DELAY_MS - 50);
      expect(waitedMs).toBeLessThan(60_000);
    }
    expect(kindsOf(tooLate)).not.toContain('COMPLETED');
  });
});

test('nothing was lost or done twice, and every event says the time of the servers', async () => {
  await eventually(
    () => expect(contradictions(installation).filter((each) => !each.includes('DEAD_LETTER'))).toEqual([]),
    { timeoutMs: 30_000 },
  );
  const off = [...installation.book.values()]
    .flat()
    .filter(({ event, storedAt: stored }) => Math.abs(event.at - stored) > 10_000);
  expect(off).toEqual([]);
});
