import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { encodeEvent } from '../../../src/domain/codec.ts';
import { ensureStreams } from '../../../src/log/streams.ts';
import { type Names, names as namesOf } from '../../../src/log/subjects.ts';
import { silentLogger as logger } from '../../../src/observe/log.ts';
import { loadConfig } from '../../../src/platform/config.ts';
import { type DispatcherProcess, startDispatcher } from '../dispatcher-process.ts';
import { round } from '../figure.ts';
import type { Bench, Measurement } from '../measurement.ts';
import { fillWithWaiting, ingested } from '../waiting-tasks.ts';

/** What the dispatchers log. */
const LEADING = 'leading';
const READY = 'the log is replayed';
const SNAPSHOT = 'a snapshot of the memory is written';
const QUEUED_WITHIN_MS = 120_000;

/**
 * From the end of the leading dispatcher to the first QUEUED of the next: with a standby, from a cold start that finds a
 * snapshot, and when the leader is asked to stop. A task of a new type shows it; of the others as many are QUEUED as
 * nobody claims.
 */
export const failover: Measurement = {
  name: 'failover',
  about: 'from the end of the leading dispatcher to the next QUEUED, with --waiting tasks that wait',
  layout: [],
  async run(bench: Bench) {
    for (const waiting of bench.settings.waiting) await measure(bench, waiting);
  },
};

async function measure(bench: Bench, waiting: number): Promise<void> {
  const prefix = `w${waiting}_`;
  const settings = { NATS_URL: bench.stand.natsUrl, TASKLEDGER_PREFIX: prefix };
  const env = {
    ...settings,
    TASKLEDGER_SNAPSHOT_MS: '1000',
    TASKLEDGER_SNAPSHOT_EVENTS: '1',
    // Nobody claims the probes.
    TASKLEDGER_READY_WINDOW_MIN: '1000',
  };
  const names = namesOf(prefix);
  const nc = await connect({ servers: bench.stand.natsUrl.split(',') });
  const dir = await mkdtemp(join(tmpdir(), 'taskledger-failover-'));
  const running: DispatcherProcess[] = [];
  const start = async (): Promise<DispatcherProcess> => {
    const dispatcher = await startDispatcher(dir, env);
    running.push(dispatcher);
    return dispatcher;
  };
  const report = async (kind: string, next: DispatcherProcess, endedAt: number, queuedAt: number) => {
    const afterLeaseMs = queuedAt - (await next.said(LEADING)).at;
    bench.report(`failover_${kind}`, queuedAt - endedAt, 'ms', { waiting, afterLeaseMs });
  };
  try {
    await ensureStreams({ nc, names, config: loadConfig(settings), logger });
    await fillWithWaiting(nc, names, waiting);
    bench.log(`${waiting} tasks wait`);
    const first = await start();
    await first.said(LEADING);
    bench.report('dispatcher_start_from_log', Number((await first.said(READY)).fields['ms']), 'ms', {
      waiting,
    });
    await whenQueued(nc, names);
    const { bytes, ms } = (await first.said(SNAPSHOT)).fields;
    bench.report('snapshot', Number(ms), 'ms', { waiting, bytes: Number(bytes) });

    await first.kill();
    const coldAt = Date.now();
    const cold = await start();
    await report('cold_from_snapshot', cold, coldAt, await whenQueued(nc, names));
    const { ms: startMs, snapshot } = (await cold.said(READY)).fields;
    if (waiting > 0 && !(Number(snapshot) > 0)) throw new Error('the cold start found no snapshot');
    bench.report('dispatcher_start_from_snapshot', Number(startMs), 'ms', { waiting });

    const standby = await start();
    await standby.said(READY);
    await cold.kill();
    const diedAt = Date.now();
    await report('to_standby', standby, diedAt, await whenQueued(nc, names));

    const successor = await start();
    await successor.said(READY);
    const probing = probeSteadily(nc, names);
    standby.dismiss();
    await successor.said(LEADING);
    bench.report('failover_planned', await probing.longestWait(), 'ms', { waiting });
  } finally {
    for (const dispatcher of running) await dispatcher.kill();
    await rm(dir, { recursive: true, force: true });
    await nc.close();
  }
}

let probes = 0;

/** Submits a task of a new type and answers when its QUEUED came (ms since 1970). */
async function whenQueued(nc: NatsConnection, names: Names): Promise<number> {
  probes += 1;
  const type = `probe-${probes}`;
  const feed = nc.subscribe(names.feed('*', type, '*', 'queued'), { max: 1 });
  const event = ingested(type, 'probe');
  nc.publish(names.taskEvent(event.tenant, type, event.taskId, event.kind), encodeEvent(event));
  const timer = setTimeout(() => feed.unsubscribe(), QUEUED_WITHIN_MS);
  try {
    for await (const _queued of feed) return Date.now();
    throw new Error(`nothing was queued for ${QUEUED_WITHIN_MS} ms`);
  } finally {
    clearTimeout(timer);
  }
}

const PROBE_EVERY_MS = 10;

/** Submits a task every few ms until it is asked how long the one waited for its QUEUED that waited longest. */
function probeSteadily(nc: NatsConnection, names: Names) {
  const type = 'steady-probe';
  const submitted = new Map<string, number>();
  let longest = 0;
  let whenAll = (): void => {};
  const feed = nc.subscribe(names.feed('*', type, '*', 'queued'), {
    callback: (_error, { subject }) => {
      const taskId = subject.split('.').at(-2) ?? '';
      longest = Math.max(longest, performance.now() - (submitted.get(taskId) ?? performance.now()));
      submitted.delete(taskId);
      if (submitted.size === 0) whenAll();
    },
  });
  const timer = setInterval(() => {
    const event = ingested(type, 'probe');
    submitted.set(event.taskId, performance.now());
    nc.publish(names.taskEvent(event.tenant, type, event.taskId, event.kind), encodeEvent(event));
  }, PROBE_EVERY_MS);
  return {
    async longestWait(): Promise<number> {
      clearInterval(timer);
      const all = new Promise<void>((resolve) => {
        whenAll = resolve;
      });
      if (submitted.size > 0) await all;
      feed.unsubscribe();
      return round(longest);
    },
  };
}
