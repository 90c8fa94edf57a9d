import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDispatcher } from '../../src/dispatch/dispatcher.ts';
import { NotRetryable } from '../../src/index.ts';
import { createLogger } from '../../src/observe/log.ts';
import { openWorkers } from '../../src/registry/workers.ts';
import { eventually } from '../support/eventually.ts';
import { openWorkerRig, TYPE, type WorkerRig } from '../support/worker-rig.ts';

const policy = { maxRetries: 3, backoff: { kind: 'fixed', baseMs: 50 }, backoffFloorMs: 0 } as const;

let rig: WorkerRig;
let stopDispatcher: () => Promise<void>;
beforeAll(async () => {
  rig = await openWorkerRig(import.meta.url, { ackWaitMs: 3_000 });
  const { world } = rig;
  const { nc, log, clock } = await world.connect();
  const logger = createLogger({ logLevel: 'error' });
  const { names, config } = world;
  const dispatcher = createDispatcher({ nc, log, names, config, clock, logger });
  await dispatcher.start();
  await dispatcher.whenLeader();
  stopDispatcher = () => dispatcher.stop();
});
afterAll(async () => {
  await rig.stopWorkers();
  await stopDispatcher();
  await rig.stop();
});

test('a task that fails twice is retried after its backoff, and completes at its third attempt', async () => {
  await rig.worker({
    types: {
      [TYPE]: ({ attempt }) => {
        if (attempt < 3) throw new Error(`attempt ${attempt}`);
        return attempt;
      },
    },
  });
  const id = await rig.world.ingest({ policy });
  expect((await rig.event(id, 'COMPLETED')).data.result).toBe(3);
  expect(rig.kinds(id).filter((kind) => kind === 'FAILED')).toHaveLength(2);
  await rig.stopWorkers();
});

test('a failure says which release of the code has failed, and so does the registry', async () => {
  await rig.worker({
    version: '2026.11.3',
    types: {
      [TYPE]: () => {
        throw new NotRetryable('broken');
      },
    },
  });
  const id = await rig.world.ingest({ policy });
  expect((await rig.event(id, 'FAILED')).data.workerVersion).toBe('2026.11.3');
  const workers = openWorkers(rig.world);
  const releases = async () => (await workers.list()).map(({ workerVersion }) => workerVersion);
  await eventually(async () => (await releases()).includes('2026.11.3'));
  await workers.stop();
  await rig.stopWorkers();
});

test('a task whose worker is killed is back in the queue and done by another without a hand', async () => {
  const victim = await rig.spawn({ concurrency: 1 });
  const id = await rig.world.ingest({ policy, payload: { do: 'wait', ms: 60_000 } });
  await victim.printed(`started ${id} 1`);
  await victim.kill('SIGKILL');
  await rig.worker({ types: { [TYPE]: ({ attempt }) => attempt } });
  expect((await rig.event(id, 'COMPLETED')).data.result).toBe(2);
  await rig.stopWorkers();
});

test('a task that kills every worker uses up its attempts and ends in the dead-letter queue', async () => {
  const id = await rig.world.ingest({ policy: { ...policy, maxRetries: 1 }, payload: { do: 'exit', ms: 3 } });
  const first = await rig.spawn({ concurrency: 1 });
  await first.exited;
  const second = await rig.spawn({ concurrency: 1 });
  await second.exited;
  // Somebody has to be there to find out that the second is gone.
  await rig.worker({ types: { [TYPE]: () => 'ran' } });
  expect((await rig.event(id, 'DEAD_LETTER')).data.reason).toBe('retries');
  expect(rig.kinds(id).filter((kind) => kind === 'CLAIMED')).toHaveLength(2);
});
