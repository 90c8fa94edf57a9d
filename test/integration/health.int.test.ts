import { Kvm } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createHealth } from '../../src/http/health.ts';
import { createWorker } from '../../src/index.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { type Names, names as namesOf } from '../../src/log/subjects.ts';
import { STALL_MS } from '../../src/observe/flow.ts';
import { createFlowCheck } from '../../src/observe/flow-check.ts';
import { createHealthListener } from '../../src/observe/health-listener.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { eventually } from '../support/eventually.ts';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import { recordingLogger } from '../support/read-models.ts';
import { connectTestNats, testNamespace, testNatsUrl } from '../support/servers.ts';

const prefix = testNamespace(import.meta.url);
let nc: NatsConnection;
let names: Names;
beforeAll(async () => {
  nc = await connectTestNats();
  names = namesOf(prefix);
  await ensureStreams({ nc, names, config: loadConfig({}), logger: silentLogger });
});
afterAll(() => nc.close());

const ask = async (port: unknown, path: string) => {
  const response = await fetch(`http://127.0.0.1:${String(port)}${path}`);
  return { status: response.status, text: await response.text() };
};

describe('health', () => {
  test('turns red when ready work is not claimed though a worker has room, says so, and turns green with the next claim', async () => {
    let now = 0;
    const flow = createFlowCheck({
      nc,
      backlog: names.backlog,
      workers: names.buckets.workers,
      now: () => now,
    });
    await flow.start();
    const health = createHealth({ nc, names, flow });
    const listener = createHealthListener({
      host: '127.0.0.1',
      port: 0,
      check: async () => {
        const report = await health.check();
        return { ...report, ready: report.checks.flow?.ok === true };
      },
      metrics: async () => '',
      logger: silentLogger,
    });
    await listener.start();
    const announce = (claimed: number) =>
      nc.publish(
        names.backlog,
        JSON.stringify({ waiting: { mail: 4 }, flow: { mail: { ready: 4, claimed } } }),
      );
    const workers = await new Kvm(nc).open(names.buckets.workers);
    await workers.put('w1', JSON.stringify({ types: ['mail'], concurrency: 1, active: [] }));

    announce(7);
    await nc.flush();
    expect(await ask(listener.port(), '/healthz?deep')).toMatchObject({ status: 200 });
    now = STALL_MS;
    announce(7);
    const red = await eventually(async () => {
      const answer = await ask(listener.port(), '/healthz?deep');
      return answer.status === 503 && answer.text.includes('have room') ? answer : false;
    });
    expect(red.text).toContain('4 tasks of mail are ready and none was claimed for 15 s');
    expect((await health.check()).ready).toBe(true);
    expect((await ask(listener.port(), '/healthz')).status).toBe(200);

    announce(8);
    await eventually(async () => expect((await ask(listener.port(), '/readyz')).status).toBe(200));
    await workers.delete('w1');
    await listener.stop();
    await flow.stop();
  });

  test('is red while nothing is stored, though the log can be asked, and says why', async () => {
    let trouble: string | undefined = 'nothing was stored for 9 s';
    const health = createHealth({ nc, names, log: { publisher: { trouble: () => trouble } } });
    expect(await health.check()).toMatchObject({
      ready: false,
      checks: { nats: { ok: true }, log: { ok: false, detail: trouble } },
    });
    trouble = undefined;
    expect(await health.check()).toMatchObject({ ready: true, checks: { log: { ok: true } } });
  });

  test('of a dispatcher and a projector without an API, with their metrics', async () => {
    const processes: NodeProcess[] = [];
    try {
      const started = startNodeProcess('src/main.ts', ['dispatcher', 'projector'], {
        NATS_URL: testNatsUrl(),
        TASKLEDGER_PREFIX: prefix,
        DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
        TASKLEDGER_HEALTH_PORT: '0',
      });
      processes.push(started);
      const { port } = await started.logged('health and metrics are served', 60_000);
      await started.logged('started', 60_000);
      await eventually(async () =>
        expect((await ask(port, '/metrics')).text).toContain('taskledger_dispatcher_leads 1'),
      );
      const { text } = await ask(port, '/readyz');
      expect(JSON.parse(text)).toMatchObject({
        checks: { nats: { ok: true }, dispatcher: { ok: true, detail: 'leads' }, projector: {} },
      });
      expect((await ask(port, '/metrics')).text).toContain('taskledger_projector_lag_events');
    } finally {
      for (const each of processes) await each.stop('SIGKILL');
    }
  });

  test('of a worker, with its metrics', async () => {
    process.env['TASKLEDGER_HEALTH_PORT'] = '0';
    const logger = recordingLogger();
    const worker = createWorker({ nats: testNatsUrl(), prefix, types: { mail: () => 'sent' }, logger });
    delete process.env['TASKLEDGER_HEALTH_PORT'];
    await worker.start();
    const port = logger.lines.find(({ message }) => message.startsWith('health'))?.fields['port'];
    expect((await ask(port, '/readyz')).status).toBe(200);
    expect((await ask(port, '/metrics')).text).toContain('taskledger_worker_running 0');
    await worker.stop();
    await expect(ask(port, '/healthz')).rejects.toThrow();
  });
});
