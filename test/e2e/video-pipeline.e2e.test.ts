import { mkdtemp, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { DEMO_TENANT, ensureKeys } from '../../deploy/dev/keys.ts';
import type { Task } from '../../src/cli/answers.ts';
import { type Api, createApi } from '../../src/cli/api.ts';
import type { Demo } from '../../src/demo/demo.ts';
import { chooseDemo } from '../../src/demo/settings.ts';
import type { EventOf } from '../../src/domain/events.ts';
import { openLog } from '../../src/log/open.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { type Config, loadConfig } from '../../src/platform/config.ts';
import { eventually } from '../support/eventually.ts';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import {
  connectTestNats,
  createTestDatabase,
  type TestDatabase,
  testNamespace,
  testNatsUrl,
} from '../support/servers.ts';

/** Where ffmpeg is not to be had, the same is shown on documents: the pipeline of the demo that `npm start` would run. */
const demo: Demo = await chooseDemo(undefined);
if (demo.name !== 'video')
  console.log('[e2e] ffmpeg is not on PATH: the pipeline runs on documents instead of video');
const ITEMS = demo.name === 'video' ? 6 : 30;
const TASKS = ITEMS * demo.types.length;
/** The type whose attempts take longest: a worker is killed in the middle of one. */
const SLOWEST = demo.name === 'video' ? 'transcode' : 'search-index';

let database: TestDatabase;
let nc: NatsConnection;
let config: Config;
let dataDir: string;
let program: NodeProcess;
let api: Api;
let workers: NodeProcess[];
let tasks: readonly Task[];
const processes: NodeProcess[] = [];

beforeAll(async () => {
  [database, nc, dataDir] = await Promise.all([
    createTestDatabase(import.meta.url),
    connectTestNats(),
    mkdtemp(join(tmpdir(), 'taskledger-e2e-')),
  ]);
  const env = {
    NATS_URL: testNatsUrl(),
    DATABASE_URL: database.url,
    TASKLEDGER_PREFIX: testNamespace(import.meta.url),
    TASKLEDGER_HTTP_PORT: '0',
    TASKLEDGER_ACK_WAIT_MS: '4000',
  };
  config = loadConfig(env);
  const start = (file: string, args: readonly string[], more: Record<string, string> = {}): NodeProcess => {
    const started = startNodeProcess(file, args, { ...env, ...more });
    processes.push(started);
    return started;
  };
  const { demo: key } = await ensureKeys(config, dataDir);
  program = start('src/main.ts', ['all']);
  const { url } = await program.logged('HTTP API listens');
  api = createApi({ url: String(url), key });

  const which = ['--demo', demo.name, '--data', dataDir];
  workers = [0, 1].map(() => start('src/demo/worker.ts', [...which, '--concurrency', '2']));
  await Promise.all(workers.map((worker) => worker.logged('worker started')));
  const killed = killInTheMiddle(workers[0]);
  start('src/demo/traffic.ts', [...which, '--items', String(ITEMS), '--every-ms', '1'], {
    TASKLEDGER_URL: String(url),
    TASKLEDGER_KEY: key,
  });
  await killed;
  tasks = await eventually(allCompleted, { timeoutMs: 150_000, intervalMs: 250 });
}, 200_000);

afterAll(async () => {
  for (const each of processes.reverse()) await each.stop('SIGKILL');
  await nc?.close();
  await database?.drop();
  await rm(dataDir, { recursive: true, force: true, maxRetries: 10 });
});

/** Kills the worker as soon as the live feed shows that it has begun an attempt of the slowest type. */
async function killInTheMiddle(victim: NodeProcess | undefined): Promise<void> {
  const feed = nc.subscribe(namesOf(config.prefix).feed(DEMO_TENANT, SLOWEST, '*', 'processing'));
  for await (const message of feed) {
    const { actor } = message.json<EventOf<'PROCESSING'>>();
    if (!actor.id.includes(`-${victim?.pid}-`)) continue;
    await victim?.stop('SIGKILL');
    return;
  }
}

async function allCompleted(): Promise<readonly Task[] | false> {
  const { tasks: found } = await api.tasks({ limit: 200 });
  return found.length === TASKS && found.every(({ status }) => status === 'COMPLETED') ? found : false;
}

describe(`the ${demo.name} pipeline, with a worker killed in the middle`, () => {
  test('gives every item the result of each of its steps', () => {
    const steps = new Map<string, Set<string>>();
    for (const { type, payload, result } of tasks) {
      const [item] = Object.values(payload as Record<string, string>);
      expect(result, `${type} of ${item}`).toBeTypeOf('object');
      steps.set(item ?? '', (steps.get(item ?? '') ?? new Set()).add(type));
    }
    expect(steps.size).toBe(ITEMS);
    for (const done of steps.values()) expect([...done].sort()).toEqual([...demo.types].sort());
  });

  test('leaves on disk every file that a result names, in the size that it names', async () => {
    const made = tasks.flatMap(({ result }) => (hasFile(result) ? [result] : []));
    expect(made).toHaveLength(ITEMS * (demo.name === 'video' ? 2 : 3));
    for (const { file, bytes, compressedBytes } of made) {
      const { size } = await stat(join(dataDir, 'media', demo.name, file));
      expect(size).toBe(compressedBytes ?? bytes);
    }
  });

  test('takes the lost attempts over: they are on record, and another worker completed the task', async () => {
    const victim = `-${workers[0]?.pid}-`;
    const survivor = `-${workers[1]?.pid}-`;
    let takenOver = 0;
    for (const { id } of tasks) {
      const { events } = await api.events(id);
      const lost = events.some(
        (event) => event.kind === 'RETRY_CLAIMED' && event.data.lostWorker.includes(victim),
      );
      if (!lost) continue;
      takenOver += 1;
      const last = events.at(-1);
      expect(last?.kind).toBe('COMPLETED');
      expect(last?.attempt).toBeGreaterThan(1);
      expect(last?.actor.id).toContain(survivor);
    }
    expect(takenOver).toBeGreaterThan(0);
  });

  test('accepts exactly one completion for every task, in the log and in the audit trail', async () => {
    const log = await openLog({ nc, names: namesOf(config.prefix), config, logger: silentLogger });
    try {
      for (const { id } of tasks) {
        const logged = (await log.readTask(DEMO_TENANT, id)).map(({ event }) => event.kind);
        const audited = (await api.events(id)).events.map(({ kind }) => kind);
        expect(logged.filter((kind) => kind === 'COMPLETED')).toHaveLength(1);
        expect(audited).toEqual(logged);
      }
    } finally {
      await log.close();
    }
  });

  test('ends in order when it is told to stop', async () => {
    expect(await workers[1]?.stop()).toBe(0);
    expect(await program.stop()).toBe(0);
  });
});

interface FileResult {
  readonly file: string;
  readonly bytes: number;
  readonly compressedBytes?: number;
}
const hasFile = (result: unknown): result is FileResult =>
  typeof result === 'object' && result !== null && 'file' in result;
