import { eventually } from '../../support/eventually.ts';
import { round } from '../figure.ts';
import type { Quantiles } from '../load/clock.ts';
import { type Bench, completedBy, type Measurement } from '../measurement.ts';
import { startMeter } from '../meter.ts';
import { reportCpu } from './cost.ts';

const PER_SECOND = 500;
const WARM_UP_SECONDS = 3;

/** The instant before the call is the start, so a saturated system shows as growing latency. One worker process. */
export const latency: Measurement = {
  name: 'latency',
  about: `${PER_SECOND} single submissions a second: to the start of the handler, and to the stored completion`,
  async run(bench: Bench) {
    const { seconds, via } = bench.settings;
    const producer = await bench.producer(via);
    const workers = await bench.startWorkers({ keepLatency: true });
    const warmUp = await producer.call('pace', { perSecond: PER_SECOND, seconds: WARM_UP_SECONDS });
    await eventually(() => completedBy(workers) >= warmUp.tasks, { timeoutMs: 30_000 });
    await Promise.all(workers.map((worker) => worker.call('reset')));
    const meter = startMeter(bench.parts());
    const paced = await producer.call('pace', { perSecond: PER_SECOND, seconds });
    await eventually(() => completedBy(workers) >= warmUp.tasks + paced.tasks, { timeoutMs: 60_000 });
    const reading = meter.read();
    const stats = await Promise.all(workers.map((worker) => worker.call('stats')));
    const params = {
      perSecond: round(paced.tasks / paced.seconds),
      seconds,
      via,
      submitterLagMs: paced.maxLagMs,
      ...(reading.foreignCores !== undefined && { foreignCores: round(reading.foreignCores, 2) }),
    };
    const report = (name: string, quantiles: Quantiles): void => {
      for (const key of ['p50', 'p95', 'p99', 'max'] as const) {
        bench.report(`${name}_${key}`, quantiles[key], 'ms', key === 'p50' ? params : {});
      }
    };
    for (const { start, done } of stats.slice(0, 1)) {
      report('latency_start', start);
      report('latency_completed', done);
    }
    reportCpu(bench, 'latency_cpu', reading, paced.tasks);
  },
};
