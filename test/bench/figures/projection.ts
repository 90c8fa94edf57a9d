import { round } from '../figure.ts';
import type { Bench, Measurement } from '../measurement.ts';
import { projectionRate } from '../projection-rate.ts';

const TASKS = 40_000;

/** The product does not run beside it: a log that is already full, one projector, all read models. */
export const projection: Measurement = {
  name: 'projection',
  about: `rebuilds all read models from a log of ${TASKS} tasks, in the bench's own process`,
  layout: [],
  async run(bench: Bench) {
    const { natsUrl, databaseUrl, parts } = bench.stand;
    const [postgresPid = 0] = parts['postgres'] ?? [];
    const rate = await projectionRate({ natsUrl, databaseUrl, postgresPid, prefix: '', tasks: TASKS });
    const { events, batches } = rate;
    bench.report('projection', round(rate.eventsPerSecond), 'events/s', { events, batches });
    bench.report('projection_cpu_projector', round(rate.projectorMicros, 1), 'CPU us/event');
    bench.report('projection_cpu_postgres', round(rate.postgresMicros, 1), 'CPU us/event');
  },
};
