import { setTimeout as delay } from 'node:timers/promises';
import { round } from '../figure.ts';
import { type Bench, completedBy, type Measurement } from '../measurement.ts';
import { startMeter } from '../meter.ts';
import type { Durability } from '../stand.ts';
import { reportCpu } from './cost.ts';
import { openLoop } from './sustained.ts';

/** What each level of deploy/DURABILITY.md costs, on as many nats-servers as it needs, all on this machine. */
const LEVELS: readonly { readonly name: string; readonly about: string; readonly durability: Durability }[] =
  [
    { name: 'durability_r1', about: 'one copy', durability: { replicas: 1 } },
    {
      name: 'durability_r1_always',
      about: 'one copy, sync_interval: always',
      durability: { replicas: 1, sync: 'always' },
    },
    { name: 'durability_r3', about: 'three copies', durability: { replicas: 3 } },
    {
      name: 'durability_r3_always',
      about: 'three copies, sync_interval: always',
      durability: { replicas: 3, sync: 'always' },
    },
  ];
const IN_FLIGHT = 64;
const WARM_UP_TASKS = 500;

export const durability: readonly Measurement[] = LEVELS.map(({ name, about, durability: level }) => ({
  name,
  about: `${about}: submissions one after the other and ${IN_FLIGHT} at a time, and the sustained rate; when asked for`,
  durability: level,
  onRequest: true,
  async run(bench: Bench) {
    const { seconds, via } = bench.settings;
    const producer = await bench.producer(via);
    await producer.call('flood', { tasks: WARM_UP_TASKS, inFlight: IN_FLIGHT, batch: 1 });
    const single = await producer.call('flood', { seconds: seconds / 4, inFlight: 1, batch: 1 });
    bench.report(`${name}_submit`, round((1_000 * single.seconds) / single.tasks, 2), 'ms', {
      via,
      inFlight: 1,
    });
    const many = await producer.call('flood', { seconds: seconds / 4, inFlight: IN_FLIGHT, batch: 1 });
    bench.report(`${name}_submit_rate`, round(many.tasks / many.seconds), 'tasks/s', {
      via,
      inFlight: IN_FLIGHT,
    });

    const { workers, close } = await openLoop(bench);
    const meter = startMeter(bench.parts());
    const before = completedBy(workers);
    const startedAt = performance.now();
    await delay(seconds * 1_000);
    const tasks = completedBy(workers) - before;
    const elapsedSeconds = (performance.now() - startedAt) / 1_000;
    const reading = meter.read();
    const { foreignCores } = reading;
    await close();
    bench.report(`${name}_sustained`, round(tasks / elapsedSeconds), 'tasks/s', {
      via,
      seconds: round(elapsedSeconds, 1),
      ...(foreignCores !== undefined && { foreignCores: round(foreignCores, 2) }),
    });
    reportCpu(bench, `${name}_cpu`, reading, tasks);
  },
}));
