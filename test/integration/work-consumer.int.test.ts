import { jetstreamManager } from '@nats-io/jetstream';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { createDispatcher, type Dispatcher } from '../../src/dispatch/dispatcher.ts';
import { ensureWorkConsumer } from '../../src/log/streams.ts';
import { createLogger } from '../../src/observe/log.ts';
import { eventually } from '../support/eventually.ts';
import { hardOfHearing } from '../support/hard-of-hearing.ts';
import { openWorkerRig, TYPE, type WorkerRig } from '../support/worker-rig.ts';

const SETTLED = 60;
const WAITING = 12;

let rig: WorkerRig;
let dispatcher: Dispatcher;
/** Task ids, once for each time that a handler was called. */
let ran: string[];

beforeEach(async () => {
  ran = [];
  rig = await openWorkerRig(import.meta.url, { ackWaitMs: 30_000 });
  const { nc, log, clock } = await rig.world.connect();
  const { names, config } = rig.world;
  const logger = createLogger({ logLevel: 'error' });
  // The reconciler would make the consumer as well: here it comes too late to.
  const patient = { ...config, reconcileEveryMs: 600_000 };
  dispatcher = createDispatcher({ nc, log, names, config: patient, clock, logger });
  await dispatcher.start();
  await dispatcher.whenLeader();
});
afterEach(async () => {
  await rig.stopWorkers();
  await dispatcher.stop();
  await rig.stop();
});

const startWorker = () =>
  rig.worker({
    types: {
      [TYPE]: ({ task }) => {
        ran.push(task.id);
      },
    },
  });
const ingestMany = (count: number): Promise<string[]> =>
  Promise.all(Array.from({ length: count }, () => rig.world.ingest()));
const whenCompleted = (count: number) =>
  eventually(() => expect(rig.world.count('COMPLETED')).toBe(count), { timeoutMs: 60_000 });

async function deleteConsumer(): Promise<void> {
  const { nc, names } = rig.world;
  await (await jetstreamManager(nc)).consumers.delete(names.streams.tasks, names.workConsumer(TYPE));
}

/** How many items the consumer of today has delivered. */
async function delivered(): Promise<number> {
  const { nc, names } = rig.world;
  const jsm = await jetstreamManager(nc);
  return (await jsm.consumers.info(names.streams.tasks, names.workConsumer(TYPE))).delivered.consumer_seq;
}

async function settleSome(): Promise<void> {
  await startWorker();
  await ingestMany(SETTLED);
  await whenCompleted(SETTLED);
  // It says from where on a consumer delivers: by what it has heard, which may be less than the test has.
  await eventually(() => expect(dispatcher.stats().liveTasks).toBe(0));
}

it('a worker that finds its consumer gone is given what waits, and nothing that is settled', async () => {
  await settleSome();
  await rig.stopWorkers();
  const ids = await ingestMany(WAITING);
  await eventually(() => expect(rig.world.count('QUEUED')).toBe(WAITING));
  await deleteConsumer();
  ran = [];
  await startWorker();
  await whenCompleted(SETTLED + WAITING);
  expect(ran.toSorted()).toEqual(ids.toSorted());
  expect(await delivered()).toBe(WAITING);
});

it('a worker whose consumer is deleted under it goes on with what comes after', async () => {
  await settleSome();
  await deleteConsumer();
  ran = [];
  const ids = await ingestMany(WAITING);
  await whenCompleted(SETTLED + WAITING);
  expect(ran.toSorted()).toEqual(ids.toSorted());
  expect(await delivered()).toBe(WAITING);
});

it('without a dispatcher that could say where work begins, what is settled is delivered again and not run', async () => {
  await settleSome();
  await rig.stopWorkers();
  const ids = await ingestMany(WAITING);
  await eventually(() => expect(rig.world.count('QUEUED')).toBe(WAITING));
  await dispatcher.stop();
  await deleteConsumer();
  ran = [];
  await startWorker();
  await whenCompleted(SETTLED + WAITING);
  await rig.whenAllAcked();
  expect(ran.toSorted()).toEqual(ids.toSorted());
  expect(await delivered()).toBe(SETTLED + WAITING);
});

it('a consumer begins where work begins when it is made, not where it began at the first try', async () => {
  const { nc, names, config } = rig.world;
  const deaf = hardOfHearing(nc, '$JS.API.CONSUMER.CREATE.');
  const begins = [1, 42];
  await ensureWorkConsumer({ nc: deaf, names, config }, 'other', { fromSeq: () => begins.shift() ?? 99 });
  const jsm = await jetstreamManager(nc);
  const made = await jsm.consumers.info(names.streams.tasks, names.workConsumer('other'));
  expect(made.config.opt_start_seq).toBe(42);
});
