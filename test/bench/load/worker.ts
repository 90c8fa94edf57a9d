import { setTimeout as delay } from 'node:timers/promises';
import { createWorker, type Worker } from '../../../src/index.ts';
import { nowUs, quantilesMs } from './clock.ts';
import type { WorkerCalls } from './messages.ts';
import type { BenchPayload } from './payload.ts';
import { serve, tellProgress } from './serve.ts';

/** The working side: one process with one worker whose handler returns at once. */
let worker: Worker | undefined;
let progressTimer: NodeJS.Timeout | undefined;
const PROGRESS_MS = 5;

const seen = new Set<number>();
/** Never forgotten, unlike `counted`: a closed loop lives on it. */
let completedInAll = 0;
const empty = () => ({
  completed: 0,
  repeated: 0,
  firstStartUs: 0,
  lastCompletedUs: 0,
  startUs: [] as number[],
  doneUs: [] as number[],
  tenants: {} as Record<string, { starts: number; lastStartUs: number }>,
});
let counted = empty();

serve<WorkerCalls>({
  async open({ natsUrl, type, concurrency, keepLatency, runMs }) {
    worker = createWorker({
      nats: natsUrl,
      concurrency,
      types: {
        [type]: async ({ payload, task }) => {
          const { i, t } = payload as BenchPayload;
          const now = nowUs();
          counted.firstStartUs ||= now;
          if (seen.has(i)) counted.repeated += 1;
          else seen.add(i);
          if (keepLatency) counted.startUs.push(now - t);
          const starts = (counted.tenants[task.tenant]?.starts ?? 0) + 1;
          counted.tenants[task.tenant] = { starts, lastStartUs: now };
          if (runMs !== undefined) await delay(runMs);
        },
      },
      hooks: {
        completed: ({ payload }) => {
          completedInAll += 1;
          counted.completed += 1;
          counted.lastCompletedUs = nowUs();
          if (keepLatency) counted.doneUs.push(counted.lastCompletedUs - (payload as BenchPayload).t);
        },
      },
    });
    let told = 0;
    progressTimer = setInterval(() => {
      if (completedInAll === told) return;
      told = completedInAll;
      tellProgress({ completed: told, atUs: counted.lastCompletedUs });
    }, PROGRESS_MS);
    await worker.start();
  },

  reset() {
    counted = empty();
  },

  stats: () => ({
    completed: counted.completed,
    repeated: counted.repeated,
    firstStartUs: counted.firstStartUs,
    lastCompletedUs: counted.lastCompletedUs,
    tenants: counted.tenants,
    start: quantilesMs(counted.startUs),
    done: quantilesMs(counted.doneUs),
  }),

  async end() {
    clearInterval(progressTimer);
    await worker?.stop();
    setImmediate(() => process.disconnect?.());
  },
});
