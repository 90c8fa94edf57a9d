import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type PostgresServer, startPostgres } from '../../src/platform/embedded/postgres-process.ts';
import { eventually } from '../support/eventually.ts';
import { contradictions, type Installation, startInstallation, TYPE } from '../support/installation.ts';
import { testNamespace, testNatsUrl } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

const PER_SECOND = 60;
/** The worse outage is as long as what is promised. One that refuses connections shows all it does when the breaker has probed a few times. */
const OUTAGE_SECONDS = { 'does not answer': 60, 'is killed': 20 } as const;
/** Whoever waits for a Postgres that says nothing waits as long as this, or for an answer even longer. */
const CONNECT_TIMEOUT_MS = 15_000;
/** Less than that, and far more than a refusal takes on a busy machine. */
const AT_ONCE_MS = 10_000;

let dir: string;
let postgres: PostgresServer;
let proxy: TcpProxy;
let installation: Installation;

beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'postgres-outage-'));
  await chmod(dir, 0o755);
  postgres = await startPostgres({ dir: join(dir, 'postgres'), log: () => {} });
  proxy = await startTcpProxy({ port: postgres.port });
  const url = new URL(postgres.url);
  url.port = String(proxy.port);
  installation = await startInstallation({
    NATS_URL: testNatsUrl(),
    DATABASE_URL: url.href,
    DATABASE_CONNECT_TIMEOUT_MS: String(CONNECT_TIMEOUT_MS),
    TASKLEDGER_PROJECTOR_TIMEOUT_MS: '3000',
    TASKLEDGER_PREFIX: testNamespace(import.meta.url),
  });
});
afterAll(async () => {
  await installation?.stop();
  await proxy?.close();
  await postgres?.stop();
  await rm(dir, { recursive: true, force: true });
});

/** Submissions that were begun and are not completed yet: with a steady load, how long a task takes. */
const underWay = (): number => installation.sent() - installation.count('COMPLETED');

/** Asks for the queues ten times a second, answered or not, until the returned function is called. */
function keepAsking(): () => Promise<Awaited<ReturnType<Installation['get']>>[]> {
  const asked: ReturnType<Installation['get']>[] = [];
  const timer = setInterval(() => asked.push(installation.get('/v1/queues')), 100);
  return () => {
    clearInterval(timer);
    return Promise.all(asked);
  };
}

const faults = {
  'does not answer': { begin: async () => proxy.blackhole(), end: async () => proxy.pass() },
  'is killed': { begin: () => postgres.kill('SIGKILL'), end: () => postgres.restart() },
} as const;

describe.each(['does not answer', 'is killed'] as const)('while Postgres %s', (fault) => {
  test('tasks flow as they come, every query is refused at once with the reason, and the read models catch up', async () => {
    const end = installation.load(PER_SECOND);
    await eventually(() => installation.count('COMPLETED') > 0 && underWay() < PER_SECOND, {
      timeoutMs: 30_000,
    });
    await faults[fault].begin();
    await eventually(
      async () => {
        const { status, ms } = await installation.get('/v1/queues');
        return status === 503 && ms < AT_ONCE_MS;
      },
      { timeoutMs: 120_000 },
    );
    const before = {
      at: performance.now(),
      sent: installation.sent(),
      done: installation.count('COMPLETED'),
    };
    const endAsking = keepAsking();
    await pause(OUTAGE_SECONDS[fault] * 1_000);
    // Postgres is still away, the load goes on, and no more is under way than a second brings.
    await eventually(() => expect(underWay()).toBeLessThan(PER_SECOND), { timeoutMs: 30_000 });
    const during = {
      seconds: (performance.now() - before.at) / 1_000,
      sent: installation.sent() - before.sent,
      done: installation.count('COMPLETED') - before.done,
    };
    const answers = await endAsking();
    const slowestMs = Math.max(...answers.map(({ ms }) => ms));
    console.log(JSON.stringify({ fault, during, refused: answers.length, slowestMs }));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([503]));
    expect(slowestMs).toBeLessThan(AT_ONCE_MS);
    const { body } = await installation.get('/v1/queues');
    expect(body).toMatchObject({
      error: {
        code: 'read_model_unavailable',
        details: {
          reason: expect.any(String),
          lagEvents: expect.any(Number),
          lagSeconds: expect.any(Number),
        },
      },
    });
    const { lagEvents = 0, lagSeconds = 0 } = (body['error'] as { details: Record<string, number> }).details;
    expect(lagEvents).toBeGreaterThan(during.done);
    expect(lagSeconds).toBeGreaterThanOrEqual(OUTAGE_SECONDS[fault]);
    expect((await installation.get('/readyz')).status).toBe(200);
    await faults[fault].end();
    await end();

    const accepted = [...installation.told.values()].filter(({ kind }) => kind === 'accepted').length;
    expect(accepted).toBe(installation.told.size);
    await eventually(() => expect(installation.count('COMPLETED')).toBe(accepted), { timeoutMs: 60_000 });
    expect(contradictions(installation)).toEqual([]);
    await eventually(
      async () => {
        const { status, body } = await installation.get('/v1/queues');
        expect(status).toBe(200);
        expect(body['queues']).toEqual([
          expect.objectContaining({ type: TYPE, counts: expect.objectContaining({ COMPLETED: accepted }) }),
        ]);
      },
      { timeoutMs: 60_000 },
    );
  });
});
