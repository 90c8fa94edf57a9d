import type { NatsConnection } from '@nats-io/transport-node';
import { createStreamsCheck } from '../log/streams-check.ts';
import type { Names } from '../log/subjects.ts';
import { createFlowCheck, type FlowCheck } from '../observe/flow-check.ts';
import { createHealthListener } from '../observe/health-listener.ts';
import type { Logger } from '../observe/log.ts';
import { readingsText } from '../observe/metrics.ts';
import type { Config } from '../platform/config.ts';
import type { Service } from '../platform/service.ts';
import { within } from '../platform/within.ts';
import type { VersionRange } from './handler.ts';
import type { WorkerStats } from './hooks.ts';
import { workerReadings } from './readings.ts';
import { linesOf } from './work-consumers.ts';

const PROBE_MS = 2_000;

interface Part {
  readonly ok: boolean;
  readonly detail?: string;
}

/** Health of a worker; before it watches, it tells of the process alone. */
export interface WorkerHealth extends Service {
  /** From now on it looks at what the worker draws its work from, too. */
  watch(nc: NatsConnection): Promise<void>;
}

/** Health and metrics of a worker process, when TASKLEDGER_HEALTH_PORT asks for them. Ready: it takes work. */
export function createWorkerHealth({
  config,
  names,
  runnables,
  nc,
  natsTrouble,
  stats,
  problem,
  logger,
}: {
  config: Pick<Config, 'healthPort' | 'httpHost'>;
  names: Names;
  /** What this worker takes. */
  runnables: ReadonlyMap<string, { readonly versions: VersionRange }>;
  /** Undefined while there is none yet. */
  nc: () => NatsConnection | undefined;
  /** Why NATS does not answer, when that is known. */
  natsTrouble: () => string | undefined;
  stats: () => WorkerStats;
  /** Why it takes no work. */
  problem: () => string | undefined;
  logger: Logger;
}): WorkerHealth {
  if (config.healthPort === undefined)
    return { name: 'worker health', start: async () => {}, stop: async () => {}, watch: async () => {} };
  const watches: Record<string, () => Promise<readonly string[]>> = {};
  let flow: FlowCheck | undefined;
  const listener = createHealthListener({
    host: config.httpHost,
    port: config.healthPort,
    async check() {
      const reason = problem();
      const answered = await answers(nc());
      const why = natsTrouble();
      const nats = answered.ok || why === undefined ? answered : { ok: false, detail: why };
      const checks: Record<string, Part> = {
        nats,
        spool: partOf(reason === undefined ? [] : [reason]),
      };
      const looks = Object.entries(watches).map(async ([name, troubles]) => {
        checks[name] = await partWithin(troubles());
      });
      await Promise.all(looks);
      return { ready: Object.values(checks).every(({ ok }) => ok), checks, running: stats().running };
    },
    metrics: () => readingsText(workerReadings(stats(), problem() !== undefined)),
    logger,
  });
  return {
    name: 'worker health',
    start: () => listener.start(),
    async watch(connection) {
      const consumers = linesOf(runnables).map(({ type, version }) => ({
        stream: names.streams.tasks,
        consumer: names.workConsumer(type, version),
      }));
      const streams = createStreamsCheck({ nc: connection, names, consumers: () => consumers });
      const own = createFlowCheck({
        nc: connection,
        backlog: names.backlog,
        workers: names.buckets.workers,
        takenBy: {
          types: [...runnables.keys()],
          versions: Object.fromEntries([...runnables].map(([type, { versions }]) => [type, versions])),
        },
      });
      flow = own;
      await own.start();
      watches['streams'] = async () => (await streams.look()).troubles;
      watches['flow'] = () => own.troubles();
    },
    async stop() {
      await flow?.stop();
      await listener.stop();
    },
  };
}

const partOf = (troubles: readonly string[]): Part =>
  troubles.length === 0 ? { ok: true } : { ok: false, detail: troubles.join('; ') };

async function partWithin(looking: Promise<readonly string[]>): Promise<Part> {
  let part: Part = { ok: false, detail: `no answer within ${PROBE_MS} ms` };
  const told = looking.then(
    (troubles) => {
      part = partOf(troubles);
    },
    (error: unknown) => {
      part = { ok: false, detail: error instanceof Error ? error.message : String(error) };
    },
  );
  await within(PROBE_MS, told);
  return part;
}

const answers = (nc: NatsConnection | undefined): Promise<Part> =>
  partWithin(nc === undefined ? Promise.reject(new Error('not connected')) : nc.rtt().then(() => []));
