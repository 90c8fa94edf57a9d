import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Recorded } from '../../../src/domain/events.ts';
import { fold } from '../../../src/domain/task.ts';
import { createLogReader } from '../../../src/log/reader.ts';
import { silentLogger } from '../../../src/observe/log.ts';
import { byTask, type Move, newIds, readAll, walk } from './tasks.ts';
import { type Ground, prepare, type World } from './world.ts';

const LIFE: readonly Move[] = ['ingest', 'queue', 'claim', 'start', 'complete'];

export interface Fault {
  readonly name: string;
  readonly strikes: number;
  readonly strike: (ground: Ground) => Promise<void>;
}

/** Events read between two strikes: each hits a reader in full flow. */
const BETWEEN = 300;

/** Nothing is lost and nothing doubled while the fault strikes in the middle of appends and reads. */
export function faultsDoNoHarm(
  start: () => Promise<World>,
  namespace: string,
  faults: readonly Fault[],
): void {
  describe('while servers fail', () => {
    let world: World;
    beforeAll(async () => {
      world = await start();
    });
    afterAll(() => world?.stop());

    test.each(faults)(
      '$name: every task is complete, and readers see every event once, in order',
      async ({ strike, strikes }) => {
        const ground = await prepare(world, namespace);
        const log = await ground.open();
        const seen: Recorded[] = [];
        const reader = createLogReader(
          { nc: await ground.connect(), names: ground.names, logger: silentLogger },
          {
            fromSeq: 1,
            maxBatch: 100,
            gatherMs: 0,
            onBatch: ({ events }) => {
              seen.push(...events);
            },
          },
        );
        await reader.start();

        let striking = true;
        onTestFinished(async () => {
          striking = false;
          await ground.clear();
        });
        const strikeAll = async (): Promise<void> => {
          for (let n = 0; n < strikes; n += 1) {
            await reader.whenReached(reader.position() + BETWEEN);
            await strike(ground);
          }
          await reader.whenReached(reader.position() + BETWEEN);
          striking = false;
        };
        const ids: string[] = [];
        const walkers = Array.from({ length: 20 }, async () => {
          while (striking) {
            const [id = ''] = newIds(1);
            ids.push(id);
            await walk(log, id, LIFE);
          }
        });
        await Promise.all([strikeAll(), ...walkers]);

        const { lastSeq } = await log.bounds();
        expect(lastSeq, 'as many events as were accepted').toBe(ids.length * LIFE.length);
        await reader.whenReached(lastSeq);
        await reader.stop();
        expect(seen.map(({ seq }) => seq)).toEqual(Array.from({ length: lastSeq }, (_, n) => n + 1));
        expectComplete(seen, ids);

        const history = await readAll(ground, { stream: 'history', count: lastSeq });
        expect(history.length).toBe(lastSeq);
        expectComplete(history, ids);
      },
      120_000,
    );
  });
}

function expectComplete(events: readonly Recorded[], ids: readonly string[]): void {
  const tasks = byTask(events);
  expect(tasks.size).toBe(ids.length);
  for (const task of tasks.values()) expect(fold(task)).toMatchObject({ status: 'COMPLETED', attempt: 1 });
}

export const crashes: readonly Fault[] = [
  {
    name: 'the server is killed and comes back, twice',
    strikes: 2,
    strike: async ({ world, names }) => world.crash?.(names.streams.tasks),
  },
];

export const leaderChanges: readonly Fault[] = [
  {
    name: 'the log changes its leader three times',
    strikes: 3,
    strike: (ground) => ground.stepDown(ground.names.streams.tasks),
  },
  {
    name: 'the node that leads the log is killed and comes back, twice',
    strikes: 2,
    strike: async ({ world, names }) => world.crash?.(names.streams.tasks),
  },
];
