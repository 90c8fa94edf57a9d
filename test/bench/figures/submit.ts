import { round } from '../figure.ts';
import type { Bench, Measurement } from '../measurement.ts';
import { startMeter } from '../meter.ts';

interface Way {
  readonly via: 'log' | 'http';
  readonly batch: number;
  readonly inFlight: number;
}

const WARM_UP_TASKS = 2_000;

/** Tasks accepted a second while nobody works: the dispatcher and the projectors run, as in production. */
const submitting = (name: string, about: string, way: Way): Measurement => ({
  name,
  about,
  async run(bench: Bench) {
    const { seconds } = bench.settings;
    const producer = await bench.producer(way.via);
    await producer.call('flood', { tasks: WARM_UP_TASKS, inFlight: 64, batch: 1 });
    await bench.stand.whenProjected();
    const meter = startMeter(bench.parts());
    const submitted = await producer.call('flood', { seconds, inFlight: way.inFlight, batch: way.batch });
    const { foreignCores } = meter.read();
    bench.report(name, round(submitted.tasks / submitted.seconds), 'tasks/s', {
      ...way,
      seconds,
      ...(foreignCores !== undefined && { foreignCores: round(foreignCores, 2) }),
    });
  },
});

export const submitMeasurements: readonly Measurement[] = [
  submitting('submit_single', 'trusted submitter straight to the log, one by one, 64 in flight', {
    via: 'log',
    batch: 1,
    inFlight: 64,
  }),
  submitting('submit_single_http', 'POST /v1/tasks, 64 in flight', { via: 'http', batch: 1, inFlight: 64 }),
  submitting('submit_bulk', 'trusted submitter, batches of 500', { via: 'log', batch: 500, inFlight: 4 }),
  submitting('submit_bulk_http', 'POST /v1/tasks/batch, 500 tasks a request', {
    via: 'http',
    batch: 500,
    inFlight: 4,
  }),
];
