import { round } from '../figure.ts';
import type { Bench, Measurement } from '../measurement.ts';
import { rebuildRate } from '../rebuild-rate.ts';

const EVENTS_A_TASK = 5;

/** The product does not run beside it: rebuilding and verifying are the work of the bench's own process. */
export const rebuild: Measurement = {
  name: 'rebuild',
  about: 'rebuilds and verifies all read models from HISTORY and the tail of TASKS (--events)',
  layout: [],
  async run(bench: Bench) {
    const { settings, log } = bench;
    const { natsUrl, databaseUrl, parts } = bench.stand;
    const pids = { nats: parts['nats'] ?? [], postgres: parts['postgres'] ?? [] };
    const tasks = Math.ceil(settings.events / EVENTS_A_TASK);
    const { events, ...jobs } = await rebuildRate({ natsUrl, databaseUrl, pids, tasks, log });
    for (const [name, { eventsPerSecond, seconds, micros }] of Object.entries(jobs)) {
      bench.report(name, round(eventsPerSecond), 'events/s', { events, seconds });
      for (const [part, micro] of Object.entries(micros))
        bench.report(`${name}_cpu_${part}`, round(micro, 1), 'CPU us/event');
    }
  },
};
