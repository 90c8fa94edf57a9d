import type { NatsConnection } from '@nats-io/transport-node';
import { createHealthListener } from '../observe/health-listener.ts';
import type { Logger } from '../observe/log.ts';
import { readingsText } from '../observe/metrics.ts';
import type { Config } from '../platform/config.ts';
import type { Service } from '../platform/service.ts';
import { within } from '../platform/within.ts';
import type { WorkerStats } from './hooks.ts';
import { workerReadings } from './readings.ts';

const PROBE_MS = 2_000;

/** Health and metrics of a worker process, when TASKLEDGER_HEALTH_PORT asks for them. Ready: it takes work. */
export function createWorkerHealth({
  config,
  nc,
  natsTrouble,
  stats,
  problem,
  logger,
}: {
  config: Pick<Config, 'healthPort' | 'httpHost'>;
  /** Undefined while there is none yet. */
  nc: () => NatsConnection | undefined;
  /** Why NATS does not answer, when that is known. */
  natsTrouble: () => string | undefined;
  stats: () => WorkerStats;
  /** Why it takes no work. */
  problem: () => string | undefined;
  logger: Logger;
}): Service {
  if (config.healthPort === undefined)
    return { name: 'worker health', start: async () => {}, stop: async () => {} };
  return createHealthListener({
    host: config.httpHost,
    port: config.healthPort,
    async check() {
      const ok = await answers(nc());
      const nats = ok ? { ok } : { ok, detail: natsTrouble() ?? `no answer within ${PROBE_MS} ms` };
      const reason = problem();
      const spool = { ok: reason === undefined, ...(reason === undefined ? {} : { detail: reason }) };
      return { ready: nats.ok && spool.ok, checks: { nats, spool }, running: stats().running };
    },
    metrics: () => readingsText(workerReadings(stats(), problem() !== undefined)),
    logger,
  });
}

async function answers(nc: NatsConnection | undefined): Promise<boolean> {
  let ok = false;
  if (nc === undefined) return ok;
  await within(
    PROBE_MS,
    nc.rtt().then(() => {
      ok = true;
    }),
  );
  return ok;
}
