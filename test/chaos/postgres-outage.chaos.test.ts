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
/** TASKLEDGER_OUTAGE_SECONDS=60 makes it the outage that the issue speaks of. */
const OUTAGE_MS = Number(process.env['TASKLEDGER_OUTAGE_SECONDS'] ?? 12) * 1_000;

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
    DATABASE_TIMEOUT_MS: '2000',
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

/** Completions in `ms`. */
async function completedIn(ms: number): Promise<number> {
  const before = installation.count('COMPLETED');
  await pause(ms);
  return installation.count('COMPLETED') - before;
}

const faults = {
  'does not answer': { begin: async () => proxy.blackhole(), end: async () => proxy.pass() },
  'is killed': { begin: () => postgres.kill('SIGKILL'), end: () => postgres.restart() },
} as const;

describe.each(['does not answer', 'is killed'] as const)('while Postgres %s', (fault) => {
  test('tasks flow at the same rate, queries are refused at once with the reason, and the read models catch up', async () => {
    const end = installation.load(PER_SECOND);
    await eventually(() => installation.count('COMPLETED') > 0, { timeoutMs: 30_000 });
    const usual = await completedIn(4_000);
    await faults[fault].begin();
    const refused = await eventually(
      async () => {
        const answer = await installation.get('/v1/queues');
        return answer.status === 503 && answer.ms < 1_000 ? answer : false;
      },
      { timeoutMs: 30_000 },
    );
    expect(refused.body).toMatchObject({
      error: { code: 'read_model_unavailable', details: { reason: expect.any(String) } },
    });
    const during = await completedIn(OUTAGE_MS);
    const { body } = await installation.get('/v1/queues');
    expect(body).toMatchObject({
      error: { details: { lagEvents: expect.any(Number), lagSeconds: expect.any(Number) } },
    });
    const { lagEvents, lagSeconds } = (body['error'] as { details: Record<string, number> }).details;
    expect(lagEvents).toBeGreaterThan(during);
    expect(lagSeconds).toBeGreaterThanOrEqual(Math.floor(OUTAGE_MS / 1_000));
    expect((await installation.get('/readyz')).status).toBe(200);
    await faults[fault].end();
    await end();
    const rates = { usual: usual / 4, during: during / (OUTAGE_MS / 1_000) };
    console.log(JSON.stringify({ fault, outageMs: OUTAGE_MS, perSecond: rates }));
    expect(rates.during).toBeGreaterThan(0.8 * rates.usual);

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
