import { setTimeout as delay } from 'node:timers/promises';
import { eventually } from '../../support/eventually.ts';
import { round } from '../figure.ts';
import { type Bench, completedBy, type Measurement } from '../measurement.ts';
import { startMeter } from '../meter.ts';
import { reportCpu, reportMemory } from './cost.ts';

const WINDOW_TASKS = 1_000;
const WARM_UP_SECONDS = 4;
const LAG_SAMPLE_MS = 1_000;

/** Keeps `WINDOW_TASKS` tasks outstanding until `close`. */
export async function openLoop(bench: Bench) {
  const producer = await bench.producer(bench.settings.via);
  const workers = await bench.startWorkers();
  for (const worker of workers) {
    worker.onProgress((tasks) => void producer.call('credit', { tasks }).catch(() => undefined));
  }
  const submitting = producer.call('closedLoop', { window: WINDOW_TASKS });
  let failure: unknown;
  submitting.catch((error: unknown) => {
    failure = error;
  });
  await delay(WARM_UP_SECONDS * 1_000);
  return {
    workers,
    failed: () => failure !== undefined,
    close: async () => {
      await producer.call('close');
      return submitting;
    },
  };
}

/** Closed loop with the projections running: what the whole system does second after second. */
export const sustained: Measurement = {
  name: 'sustained',
  about: `end to end with at most ${WINDOW_TASKS} tasks outstanding; CPU, memory and projector lag of the same window`,
  async run(bench: Bench) {
    const { seconds, via } = bench.settings;
    const { workers, failed, close } = await openLoop(bench);

    const meter = startMeter(bench.parts());
    const startedAt = performance.now();
    const completedBefore = completedBy(workers);
    const lags: number[] = [];
    while (performance.now() - startedAt < seconds * 1_000 && !failed()) {
      await delay(Math.min(LAG_SAMPLE_MS, Math.max(1, seconds * 1_000 - (performance.now() - startedAt))));
      const lag = await bench.stand.lag();
      lags.push(lag);
      bench.log(`${completedBy(workers) - completedBefore} tasks, projectors ${lag} events behind`);
    }
    const tasks = completedBy(workers) - completedBefore;
    const elapsedSeconds = (performance.now() - startedAt) / 1_000;
    const reading = meter.read();
    const submitted = await close();
    const catchUpMs = await bench.stand.whenProjected();
    await eventually(() => completedBy(workers) >= submitted.tasks, { timeoutMs: 30_000 });
    const stats = await Promise.all(workers.map((worker) => worker.call('stats')));

    bench.report('sustained', round(tasks / elapsedSeconds), 'tasks/s', {
      seconds: round(elapsedSeconds, 1),
      window: WINDOW_TASKS,
      via,
      repeated: stats.reduce((sum, worker) => sum + worker.repeated, 0),
      ...(reading.foreignCores !== undefined && { foreignCores: round(reading.foreignCores, 2) }),
    });
    bench.report('sustained_projector_lag', lags.at(-1) ?? 0, 'events', { max: Math.max(0, ...lags) });
    bench.report('sustained_projector_catch_up', round(catchUpMs), 'ms', {});
    reportCpu(bench, 'sustained_cpu', reading, tasks);
    reportMemory(bench, 'sustained_rss', reading);
  },
};
