import { eventually } from '../../support/eventually.ts';
import { round } from '../figure.ts';
import { type Bench, completedBy, type Measurement } from '../measurement.ts';
import { BENCH_TENANT } from '../stand.ts';

const NOISY_TASKS = 20_000;
const QUIET_TENANT = 'quiet';
const QUIET_TASKS = 100;
/** Few slots and handlers that take a while, so that it is the order that is measured and not the throughput. */
const SLOTS = 20;
const RUN_MS = 250;
/** Completions before the quiet tenant submits: the ready window is full of the noisy one's. */
const WARM_UP_TASKS = 4 * SLOTS;

/** One worker process, whatever `--workers` says: the slots are what counts. */
export const noisyNeighbour: Measurement = {
  name: 'noisy_neighbour',
  about: `${NOISY_TASKS} tasks of one tenant wait, another submits ${QUIET_TASKS}: its last start, against alone at half the slots`,
  tenants: [BENCH_TENANT, QUIET_TENANT],
  async run(bench: Bench) {
    const quiet = await bench.producer('log', QUIET_TENANT);
    const aloneMs = await lastStart(bench, quiet, SLOTS / 2);
    const noisy = await bench.producer('log');
    await noisy.call('flood', { tasks: NOISY_TASKS, inFlight: 4, batch: 500 });
    const besideMs = await lastStart(bench, quiet, SLOTS, WARM_UP_TASKS);
    const params = { tasks: NOISY_TASKS, quietTasks: QUIET_TASKS, slots: SLOTS, runMs: RUN_MS };
    bench.report('noisy_neighbour', round(besideMs / aloneMs, 2), 'x alone at half the slots', params);
    bench.report('noisy_neighbour_alone', round(aloneMs), 'ms');
    bench.report('noisy_neighbour_beside', round(besideMs), 'ms');
  },
};

/** From the submission of the quiet tenant's tasks to the start of its last one. The workers end with it. */
async function lastStart(
  bench: Bench,
  quiet: Awaited<ReturnType<Bench['producer']>>,
  slots: number,
  warmUp = 0,
): Promise<number> {
  const { workers: count } = bench.settings;
  const workers = await bench.startWorkers({ concurrency: slots / count, runMs: RUN_MS });
  await eventually(() => completedBy(workers) >= warmUp, { timeoutMs: 60_000 });
  const beganUs = Number(process.hrtime.bigint() / 1_000n);
  await quiet.call('flood', { tasks: QUIET_TASKS, inFlight: 1, batch: QUIET_TASKS });
  const startsOf = async () =>
    (await Promise.all(workers.map((worker) => worker.call('stats')))).flatMap(
      ({ tenants }) => tenants[QUIET_TENANT] ?? [],
    );
  await eventually(
    async () => (await startsOf()).reduce((sum, { starts }) => sum + starts, 0) >= QUIET_TASKS,
    { timeoutMs: 60_000, intervalMs: 100 },
  );
  const lastUs = Math.max(...(await startsOf()).map(({ lastStartUs }) => lastStartUs));
  await Promise.all(workers.map((worker) => worker.end()));
  return (lastUs - beganUs) / 1_000;
}
