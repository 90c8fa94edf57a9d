import { realpathSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from './domain/errors.ts';
import { createHealth, type HealthCheck } from './http/health.ts';
import { createBucketKeeper } from './log/bucket-keeper.ts';
import { openLog } from './log/open.ts';
import { clockOfServers } from './log/server-clock.ts';
import { ensureStreams } from './log/streams.ts';
import { createStreamsCheck } from './log/streams-check.ts';
import { names as namesOf } from './log/subjects.ts';
import { createFlowCheck } from './observe/flow-check.ts';
import { createHealthListener } from './observe/health-listener.ts';
import { createLogger, type Logger } from './observe/log.ts';
import { readingsText } from './observe/metrics.ts';
import { systemClock } from './platform/clock.ts';
import { type Config, loadConfig } from './platform/config.ts';
import { connectPatiently } from './platform/nats.ts';
import { watchNats } from './platform/nats-watch.ts';
import { Patience, sparingly } from './platform/patience.ts';
import { fail, runProcess } from './platform/process.ts';
import { type Service, serviceGroup } from './platform/service.ts';
import { within } from './platform/within.ts';
import { refuseLoss } from './retention/shrinking.ts';
import { apiRole } from './roles/api.ts';
import { dispatcherRole } from './roles/dispatcher.ts';
import type { Parts } from './roles/parts.ts';
import { projectorRole } from './roles/projector.ts';

/** What a process can be; `all` stands for the three of them. */
export const ROLES = ['projector', 'dispatcher', 'api'] as const;
export type Role = (typeof ROLES)[number];

/**
 * The composition root. Connects to NATS, makes sure that the streams are there, and starts the roles in the order of
 * ROLES: the API last, so that what it accepts is dispatched. The service it returns is running.
 *
 * NATS is waited for as long as the configuration says, and health is red meanwhile. Postgres may be away: the roles
 * that need it wait for it while the others work.
 */
export async function runRoles(
  roles: readonly Role[],
  config: Config,
  stopping: AbortSignal = new AbortController().signal,
): Promise<Service> {
  const logger = createLogger(config);
  const standing: Standing = { waitsFor: 'starting', parts: undefined };
  const listener = healthListenerOf(config, logger, { standing, stopping });
  await listener.start();
  let nc: NatsConnection | undefined;
  try {
    const say = sparingly((error: TaskledgerError) =>
      logger.warn({ code: error.code, reason: error.message }, 'waiting for NATS'),
    );
    const patience = new Patience({
      forMs: config.startTimeoutMs,
      signal: stopping,
      onFailure(error) {
        standing.waitsFor = error.message;
        say(error);
      },
    });
    nc = await connectPatiently(config, `taskledger ${roles.join('+')}`, patience);
    const natsWatch = watchNats(nc, logger);
    standing.waitsFor = 'starting';
    const names = namesOf(config.prefix);
    // The servers' time is not known yet; an hour more or less is nothing to a limit of days.
    const beforeShrinking = refuseLoss({ nc, names, config, clock: systemClock, logger });
    const clock = clockOfServers(nc, names);
    await ensureStreams({ nc, names, config, logger, beforeShrinking, patience });
    const log = await openLog({ nc, names, config, logger });
    const flow = createFlowCheck({ nc, backlog: names.backlog, workers: names.buckets.workers });
    const told = { readings: [], checks: {} };
    const consumers: Parts['consumers'] = [];
    const streamsCheck = createStreamsCheck({
      nc,
      names,
      needed: Object.values(names.buckets),
      consumers: () => consumers,
    });
    const parts: Parts = {
      config,
      nc,
      natsWatch,
      names,
      log,
      clock,
      logger,
      flow,
      streamsCheck,
      consumers,
      told,
    };
    const make: Record<Role, (parts: Parts) => Promise<Service> | Service> = {
      projector: projectorRole,
      dispatcher: dispatcherRole,
      api: apiRole,
    };
    const services: Service[] = [];
    for (const role of ROLES) if (roles.includes(role)) services.push(await make[role](parts));
    const keeper = createBucketKeeper(parts);
    const group = serviceGroup('taskledger', [
      listener,
      connectionOf(parts),
      clock,
      flow,
      keeper,
      ...services,
    ]);
    await group.start(patience);
    standing.parts = parts;
    logger.info({ roles, pid: process.pid }, 'started');
    return group;
  } catch (error) {
    await nc?.close();
    await listener.stop();
    throw error;
  }
}

const DRAIN_MS = 2_000;

/** Stopped last: everything else needs the connection to stop well. */
const connectionOf = ({ nc, log }: Parts): Service => ({
  name: 'nats',
  start: async () => {},
  async stop() {
    await log.close();
    // Without a server there is nobody to drain to.
    if (!nc.isClosed()) await within(DRAIN_MS, nc.drain());
    await nc.close();
  },
});

/** How far a process has come: what it waits for, until it has its parts. */
interface Standing {
  waitsFor: string;
  parts: Parts | undefined;
}

/** Ready when everything is well that this process looks after. It serves before anything else is there. */
function healthListenerOf(
  config: Config,
  logger: Logger,
  { standing, stopping }: { standing: Standing; stopping: AbortSignal },
): Service {
  const { healthPort: port, httpHost: host } = config;
  if (port === undefined) return { name: 'no health listener', start: async () => {}, stop: async () => {} };
  return createHealthListener({
    host,
    port,
    async check() {
      const { parts } = standing;
      const waitsFor = stopping.aborted ? 'stopping' : standing.waitsFor;
      if (parts === undefined || stopping.aborted)
        return { ready: false, checks: { process: { ok: false, detail: waitsFor } } };
      const report = await createHealth(parts).check();
      const own = Object.entries(parts.told.checks).map(([name, check]) => [name, check()] as const);
      const checks: Record<string, HealthCheck> = { ...report.checks, ...Object.fromEntries(own) };
      return { ...report, ready: Object.values(checks).every(({ ok }) => ok), checks };
    },
    metrics: () => readingsText(standing.parts?.told.readings.flatMap((readings) => readings()) ?? []),
    logger,
  });
}

function rolesOf(args: readonly string[]): readonly Role[] {
  const wanted = args.length === 0 || args.includes('all') ? ROLES : args;
  const unknown = wanted.filter((role) => !(ROLES as readonly string[]).includes(role));
  if (unknown.length > 0) {
    throw new TaskledgerError('config_invalid', {
      key: `role ${unknown.join(', ')}`,
      reason: `roles are ${ROLES.join(', ')} and all`,
    });
  }
  return wanted as readonly Role[];
}

async function main(args: readonly string[]): Promise<void> {
  const [roles, config] = [rolesOf(args), loadConfig()];
  await runProcess({
    start: (stopping) => runRoles(roles, config, stopping),
    graceMs: config.shutdownGraceMs,
    logger: createLogger(config),
  });
}

if (process.argv[1] !== undefined && realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  main(process.argv.slice(2)).catch(fail);
}
