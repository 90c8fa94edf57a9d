import { connect } from '@nats-io/transport-node';
import { createLogReader } from '../../../src/log/reader.ts';
import { names as namesOf } from '../../../src/log/subjects.ts';
import { silentLogger as logger } from '../../../src/observe/log.ts';
import { eventually } from '../../support/eventually.ts';
import { round } from '../figure.ts';
import { type Quantiles, quantilesMs } from '../load/clock.ts';
import { type Bench, completedBy, type Measurement } from '../measurement.ts';
import type { Stand } from '../stand.ts';

const BURST = 100_000;
/** Long enough to submit them all before. */
const BURST_IN_MS = 40_000;
const CALM_PER_SECOND = 30;
const CALM_DELAY_MS = 2_000;
const DRAIN_TIMEOUT_MS = 180_000;

export const timerBurst: Measurement = {
  name: 'timer_burst',
  about: `${BURST} tasks due in the same second: how late they are released for dispatch, and QUEUED is stored`,
  async run(bench: Bench) {
    const producer = await bench.producer('log');
    const dueFrom = Math.ceil((Date.now() + BURST_IN_MS) / 1_000) * 1_000;
    const submitted = await producer.call('flood', { tasks: BURST, inFlight: 4, batch: 500, dueFrom });
    const leftMs = dueFrom - Date.now();
    bench.log(`submitted in ${round(submitted.seconds, 1)} s, ${leftMs} ms before they are due`);
    if (leftMs < 1_000) throw new Error('the burst was not submitted before it was due');
    const workers = await bench.startWorkers();
    await eventually(() => completedBy(workers) >= BURST, { timeoutMs: DRAIN_TIMEOUT_MS, intervalMs: 50 });
    const doneMs = Date.now() - dueFrom;
    await reportLateness(bench, 'timer_burst', { tasks: BURST });
    bench.report('timer_burst_completed', round(BURST / (doneMs / 1_000)), 'tasks/s');
  },
};

export const timerCalm: Measurement = {
  name: 'timer_calm',
  about: `${CALM_PER_SECOND} tasks a second, each due ${CALM_DELAY_MS} ms later: the same`,
  async run(bench: Bench) {
    const producer = await bench.producer('log');
    const workers = await bench.startWorkers();
    const { seconds } = bench.settings;
    const paced = await producer.call('pace', {
      perSecond: CALM_PER_SECOND,
      seconds,
      delayMs: CALM_DELAY_MS,
    });
    await eventually(() => completedBy(workers) >= paced.tasks, { timeoutMs: 30_000 });
    await reportLateness(bench, 'timer_calm', { perSecond: CALM_PER_SECOND });
  },
};

async function reportLateness(
  bench: Bench,
  name: string,
  params: Readonly<Record<string, number>>,
): Promise<void> {
  const released = await releasedLateness(bench.stand);
  const { lateness, lost, doubled } = await queuedLateness(bench.stand);
  for (const [key, share] of [
    ['p50', 0.5],
    ['p99', 0.99],
    ['max', 1],
  ] as const)
    bench.report(`${name}_released_${key}`, boundOf(released, share), 'ms, at most', {
      ...params,
      lost,
      doubled,
    });
  for (const key of ['p50', 'p99', 'max'] as const)
    bench.report(`${name}_queued_${key}`, lateness[key], 'ms', params);
}

/** What the dispatcher says: tasks by the ms that they were released late, under upper bounds. */
async function releasedLateness({ apiUrl, apiKey }: Stand): Promise<ReadonlyMap<number, number>> {
  const answer = await fetch(new URL('/metrics', apiUrl), { headers: { authorization: `Bearer ${apiKey}` } });
  const counts = new Map<number, number>();
  for (const [, within = '', count] of (await answer.text()).matchAll(
    /^taskledger_dispatcher_due_released_total\{within="(\w+)"\} (\d+)$/gm,
  ))
    counts.set(within === 'more' ? Number.POSITIVE_INFINITY : Number(within), Number(count));
  if (counts.size === 0) throw new Error('the dispatcher says nothing: it must be in the process of the API');
  return counts;
}

/** The smallest bound under which a share of the tasks is. */
function boundOf(counts: ReadonlyMap<number, number>, share: number): number {
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  let seen = 0;
  for (const [bound, count] of [...counts].sort(([a], [b]) => a - b)) {
    seen += count;
    if (seen >= share * total) return bound;
  }
  return Number.NaN;
}

/** What the log says: from the instant at which each task was due to the storing of its QUEUED. */
async function queuedLateness(
  stand: Stand,
): Promise<{ readonly lateness: Quantiles; readonly lost: number; readonly doubled: number }> {
  const nc = await connect({ servers: stand.natsUrl.split(','), name: 'bench-timers' });
  const dueAt = new Map<string, number>();
  const queued = new Map<string, number>();
  const lateUs: number[] = [];
  const reader = createLogReader(
    { nc, names: namesOf(''), logger },
    {
      fromSeq: 1,
      maxBatch: 1_000,
      gatherMs: 0,
      onBatch: ({ events }) => {
        for (const { event, storedAt } of events) {
          if (event.kind === 'INGESTED' && event.data.runAt !== undefined)
            dueAt.set(event.taskId, event.data.runAt);
          if (event.kind !== 'QUEUED') continue;
          queued.set(event.taskId, (queued.get(event.taskId) ?? 0) + 1);
          lateUs.push(1_000 * (storedAt - (dueAt.get(event.taskId) ?? Number.NaN)));
        }
      },
    },
  );
  try {
    await reader.start();
    await reader.whenReached(await stand.lastSeq());
  } finally {
    await reader.stop();
    await nc.close();
  }
  const lost = [...dueAt.keys()].filter((id) => !queued.has(id)).length;
  const doubled = [...queued.values()].filter((times) => times > 1).length;
  return { lateness: quantilesMs(lateUs), lost, doubled };
}
