import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { jetstreamManager } from '@nats-io/jetstream';
import type { CommandOf } from '../../src/domain/commands.ts';
import type { EventKind, EventOf } from '../../src/domain/events.ts';
import { createWorker, type Worker, type WorkerOptions } from '../../src/index.ts';
import { ensureWorkConsumer } from '../../src/log/streams.ts';
import { createLogger } from '../../src/observe/log.ts';
import { spawnWatchdog } from '../../src/platform/embedded/watchdog.ts';
import { programArgs } from './built.ts';
import { eventually } from './eventually.ts';
import { testNamespace, testNatsUrl } from './servers.ts';
import { openTaskWorld, type TaskWorld, TENANT, TYPE } from './task-world.ts';

export interface WorkerRig {
  readonly world: TaskWorld;
  /** Options that bind a worker to this rig's servers and prefix. */
  readonly options: Pick<WorkerOptions, 'nats' | 'prefix' | 'logger'>;
  /** A started worker; stopped with the rig. */
  worker(options: Omit<WorkerOptions, 'nats' | 'prefix'> & Pick<WorkerOptions, 'nats'>): Promise<Worker>;
  /** A worker in a process of its own (worker-process.ts), started. */
  spawn(options?: object): Promise<WorkerProcess>;
  /** Ingests and queues a task; the answer is its id. */
  enqueue(over?: Partial<CommandOf<'ingest'>>, options?: { inlinePayload?: boolean }): Promise<string>;
  /** Queues what waits for its next attempt. */
  requeue(taskId: string, options?: { inlinePayload?: boolean }): Promise<void>;
  /** Resolves with the first event of this kind. */
  event<K extends EventKind>(taskId: string, kind: K, timeoutMs?: number): Promise<EventOf<K>>;
  kinds(taskId: string): EventKind[];
  /** Resolves when the type's consumer has nothing left that is not acked. */
  whenAllAcked(type?: string, timeoutMs?: number): Promise<void>;
  consumer(type?: string): Promise<{ num_ack_pending: number; num_redelivered: number }>;
  /** Stops the workers, in the reverse order of their start. */
  stopWorkers(): Promise<void>;
  stop(): Promise<void>;
}

let rigs = 0;

/** An installation of its own on the shared NATS server; `ackWaitMs` is what the types' consumers get. */
export async function openWorkerRig(fileUrl: string, { ackWaitMs = 30_000 } = {}): Promise<WorkerRig> {
  rigs += 1;
  const prefix = testNamespace(fileUrl).replace(/_$/, `x${rigs}_`);
  const world = await openTaskWorld(prefix, { ackWaitMs });
  const { names, nc, config } = world;
  await ensureWorkConsumer({ nc, names, config }, TYPE);
  const jsm = await jetstreamManager(nc);
  const stops: (() => Promise<unknown>)[] = [];
  const logger = createLogger({ logLevel: 'error' });
  const options = { nats: testNatsUrl(), prefix, logger };
  const queueCommand = (inlinePayload: boolean): CommandOf<'queue'> => ({
    kind: 'queue',
    eventId: randomUUID(),
    at: Date.now(),
    actor: { kind: 'dispatcher', id: 'test' },
    inlinePayload,
  });
  const consumer = (type = TYPE) => jsm.consumers.info(names.streams.tasks, names.workConsumer(type));
  const stopWorkers = async () => {
    for (const stop of stops.splice(0).reverse()) await stop();
  };
  return {
    world,
    options,
    consumer,
    async worker(own) {
      const worker = createWorker({ shutdownGraceMs: 500, ...options, ...own });
      stops.push(() => worker.stop());
      await worker.start();
      return worker;
    },
    async spawn(own = {}) {
      const child = await spawnWorker({ nats: options.nats, prefix, ...own });
      stops.push(() => child.kill());
      return child;
    },
    async enqueue(over = {}, { inlinePayload = true } = {}) {
      const id = await world.ingest(over);
      await world.execute(id, () => queueCommand(inlinePayload));
      return id;
    },
    requeue: (id, { inlinePayload = true } = {}) => world.execute(id, () => queueCommand(inlinePayload)),
    event: (id, kind, timeoutMs = 30_000) =>
      eventually(
        () => {
          const found = world.book.get(id)?.find(({ event }) => event.kind === kind)?.event;
          return (found as EventOf<typeof kind> | undefined) ?? false;
        },
        { timeoutMs },
      ) as Promise<never>,
    kinds: (id) => world.kindsOf(id),
    whenAllAcked: async (type = TYPE, timeoutMs = 30_000) => {
      await eventually(
        async () => {
          const { num_ack_pending, num_pending } = await consumer(type);
          return num_ack_pending === 0 && num_pending === 0;
        },
        { timeoutMs },
      );
    },
    stopWorkers,
    async stop() {
      await stopWorkers();
      await world.stop();
    },
  };
}

export interface WorkerProcess {
  readonly pid: number;
  /** The worker's id. */
  readonly id: string;
  /** Lines the process has printed, such as `started <task id>`. */
  readonly lines: readonly string[];
  printed(line: string | RegExp, timeoutMs?: number): Promise<string>;
  readonly exited: Promise<number | null>;
  kill(signal?: NodeJS.Signals): Promise<void>;
}

/** `env`: variables beside those of this process. It is killed should the test run die, or fail before stopping it. */
export async function spawnWorker(
  options: object,
  env: Readonly<Record<string, string>> = {},
): Promise<WorkerProcess> {
  const watchdog = spawnWatchdog('SIGKILL');
  const program = programArgs('test/support/worker-process.ts');
  const child: ChildProcess = spawn(process.execPath, [...program, JSON.stringify(options)], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...env },
  });
  if (child.pid !== undefined) watchdog.watch(child.pid);
  const exited = once(child, 'exit').then(([code]) => {
    watchdog.release();
    return code as number | null;
  });
  const lines: string[] = [];
  if (child.stdout === null) throw new Error('no output');
  createInterface(child.stdout).on('line', (line) => lines.push(line));
  const printed = (wanted: string | RegExp, timeoutMs = 60_000) =>
    eventually(
      () => lines.find((line) => (typeof wanted === 'string' ? line === wanted : wanted.test(line))) ?? false,
      { timeoutMs },
    );
  const ready = await printed(/^ready /, 60_000).catch((error: unknown) => {
    child.kill('SIGKILL');
    throw error;
  });
  return {
    pid: child.pid ?? 0,
    id: ready.slice('ready '.length),
    lines,
    printed,
    exited,
    async kill(signal = 'SIGKILL') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      await exited;
    },
  };
}

export { TENANT, TYPE };
