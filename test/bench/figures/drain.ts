import { eventually } from '../../support/eventually.ts';
import { round } from '../figure.ts';
import { type Bench, completedBy, type Measurement } from '../measurement.ts';
import { startMeter } from '../meter.ts';
import { reportCpu } from './cost.ts';

const QUEUED_TASKS = 50_000;
const DRAIN_TIMEOUT_MS = 300_000;

export const drain: Measurement = {
  name: 'drain',
  about: `${QUEUED_TASKS} waiting tasks, from the start of the workers to the last completion`,
  async run(bench: Bench) {
    const producer = await bench.producer('log');
    await producer.call('flood', { tasks: QUEUED_TASKS, inFlight: 4, batch: 500 });
    await bench.stand.settle();
    const before = performance.now();
    const startedUs = process.hrtime.bigint() / 1000n;
    const workers = await bench.startWorkers();
    bench.log(`workers up after ${Math.round(performance.now() - before)} ms`);
    const meter = startMeter(bench.parts());
    await eventually(() => completedBy(workers) >= QUEUED_TASKS, {
      timeoutMs: DRAIN_TIMEOUT_MS,
      intervalMs: 50,
    });
    const reading = meter.read();
    const stats = await Promise.all(workers.map((worker) => worker.call('stats')));
    const firstUs = Math.min(...stats.map((worker) => worker.firstStartUs || Number.POSITIVE_INFINITY));
    const lastUs = Math.max(...stats.map((worker) => worker.lastCompletedUs));
    const params = {
      tasks: QUEUED_TASKS,
      repeated: stats.reduce((sum, worker) => sum + worker.repeated, 0),
      firstStartMs: round((firstUs - Number(startedUs)) / 1000),
    };
    bench.report('drain', round(QUEUED_TASKS / ((lastUs - firstUs) / 1e6)), 'tasks/s', params);
    reportCpu(bench, 'drain_cpu', reading, QUEUED_TASKS);
    bench.report('drain_projector_catch_up', round(await bench.stand.whenProjected()), 'ms', {});
  },
};
