import { createServer, type Server } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createWorker } from '../../src/index.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { eventually } from '../support/eventually.ts';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import { recordingLogger } from '../support/read-models.ts';
import {
  connectTestNats,
  createTestDatabase,
  type TestDatabase,
  testNamespace,
  testNatsUrl,
} from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

const prefix = testNamespace(import.meta.url);
let database: TestDatabase;
let nats: TcpProxy;
let postgres: TcpProxy;
const started: NodeProcess[] = [];

const proxyTo = (url: string) =>
  startTcpProxy({ host: new URL(url).hostname, port: Number(new URL(url).port) });
const through = (proxy: TcpProxy, url: string): string => {
  const there = new URL(url);
  there.port = String(proxy.port);
  return there.href;
};

beforeAll(async () => {
  database = await createTestDatabase(import.meta.url);
  [nats, postgres] = await Promise.all([proxyTo(testNatsUrl()), proxyTo(database.url)]);
});
afterEach(async () => {
  for (const each of started.splice(0)) await each.stop('SIGKILL');
  nats.pass();
  postgres.pass();
});
afterAll(async () => {
  await nats?.close();
  await postgres?.close();
  await database?.drop();
});

function start(role: string, env: Readonly<Record<string, string>> = {}): NodeProcess {
  const child = startNodeProcess('src/main.ts', [role], {
    NATS_URL: through(nats, testNatsUrl()),
    DATABASE_URL: through(postgres, database.url),
    TASKLEDGER_PREFIX: prefix,
    TASKLEDGER_HTTP_PORT: '0',
    TASKLEDGER_HEALTH_PORT: '0',
    ...env,
  });
  started.push(child);
  return child;
}

async function readiness(child: NodeProcess): Promise<{ status: number; text: string }> {
  const { port } = await child.logged('health and metrics are served');
  const response = await fetch(`http://127.0.0.1:${String(port)}/readyz`);
  return { status: response.status, text: await response.text() };
}

describe('a process that starts while NATS is away', () => {
  test.each(['api', 'dispatcher', 'projector'])(
    'waits as %s, says so, is not ready, and starts when NATS is there',
    async (role) => {
      nats.cut();
      const child = start(role);
      expect(await child.logged('waiting for NATS')).toMatchObject({ code: 'nats_unreachable' });
      const { status, text } = await readiness(child);
      expect(status).toBe(503);
      expect(text).toContain('cannot be reached');
      nats.pass();
      await child.logged('started', 60_000);
      await eventually(async () => expect((await readiness(child)).status).toBe(200));
    },
  );

  test('gives up after its time, with a code and exit code 1', async () => {
    nats.cut();
    const child = start('all', { TASKLEDGER_START_TIMEOUT_MS: '1000' });
    expect(await child.ended).toBe(1);
    expect(child.lines).toContainEqual(
      expect.stringMatching(/^nats_unreachable: NATS at .* cannot be reached/),
    );
  });

  test('stops with exit code 0 when it is told to', async () => {
    nats.cut();
    const child = start('dispatcher');
    await child.logged('waiting for NATS');
    process.kill(child.pid, 'SIGTERM');
    expect(await child.ended).toBe(0);
  });

  test('and is silent, gives up after its time and says how long it has waited', async () => {
    nats.blackhole();
    const child = start('all', { TASKLEDGER_START_TIMEOUT_MS: '1000' });
    expect(await child.ended).toBe(1);
    expect(child.lines).toContainEqual(
      expect.stringMatching(/^nats_unreachable: .* waited .* now for NATS$/),
    );
  });

  test('and is silent, stops in order when it is told to, without waiting for an answer', async () => {
    nats.blackhole();
    // The client alone would wait for 20 s.
    const child = start('all', { TASKLEDGER_SHUTDOWN_GRACE_MS: '15000' });
    await child.logged('health and metrics are served');
    process.kill(child.pid, 'SIGTERM');
    expect(await child.ended).toBe(0);
  });
});

test('a login that NATS refuses is not tried again', async () => {
  const server = await refusingServer();
  try {
    const { port } = server.address() as { port: number };
    const child = start('dispatcher', { NATS_URL: `nats://someone:wrong@127.0.0.1:${port}` });
    expect(await child.ended).toBe(1);
    expect(child.lines).toContainEqual(expect.stringMatching(/^nats_refused: /));
  } finally {
    server.close();
  }
});

/** Says what a NATS server says to a login that it does not take. */
async function refusingServer(): Promise<Server> {
  const info = { server_id: 'S', version: '2.15.1', auth_required: true, max_payload: 1_048_576, proto: 1 };
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.write(`INFO ${JSON.stringify(info)}\r\n`);
    socket.once('data', () => socket.end("-ERR 'Authorization Violation'\r\n"));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

describe('a worker that starts while NATS is away', () => {
  const worker = (startTimeoutMs: number) => {
    const logger = recordingLogger();
    const made = createWorker({
      nats: through(nats, testNatsUrl()),
      prefix,
      startTimeoutMs,
      types: { mail: () => 'sent' },
      logger,
    });
    const hasWaited = () =>
      eventually(() => logger.lines.some(({ message }) => message === 'waiting for NATS'));
    return { made, hasWaited };
  };

  test('waits, and starts when NATS is there', async () => {
    const nc = await connectTestNats();
    const config = loadConfig({});
    await ensureStreams({ nc, names: namesOf(prefix), config, logger: silentLogger });
    await nc.close();
    nats.cut();
    const { made, hasWaited } = worker(30_000);
    const starting = made.start();
    await hasWaited();
    nats.pass();
    await starting;
    await made.stop();
  });

  test('gives up after its time, and at once when it is stopped', async () => {
    nats.cut();
    await expect(worker(100).made.start()).rejects.toMatchObject({ code: 'nats_unreachable' });
    const { made, hasWaited } = worker(60_000);
    const starting = made.start();
    starting.catch(() => undefined);
    await hasWaited();
    await made.stop();
    await expect(starting).rejects.toMatchObject({ code: 'shutting_down' });
  });
});

describe('a process that starts while Postgres is away', () => {
  test('works without it as far as it can, says what is missing, and heals', async () => {
    postgres.cut();
    const child = start('all');
    await child.logged('started', 60_000);
    await child.logged('Postgres cannot be reached: read models stand still until it is back');
    expect((await readiness(child)).text).toContain('Postgres cannot be reached');
    postgres.pass();
    await child.logged('Postgres can be reached: read models go on');
    await eventually(async () => expect((await readiness(child)).status).toBe(200));
  });
});
