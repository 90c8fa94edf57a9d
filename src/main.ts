import { realpathSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { NatsConnection } from '@nats-io/transport-node';
import { createProjector } from '../projections/engine/projector.ts';
import { projectorReadings } from '../projections/engine/readings.ts';
import { createProjectionDesk } from '../projections/engine/rebuild/desk.ts';
import { createRebuilder } from '../projections/engine/rebuild/rebuilder.ts';
import { standingOf } from '../projections/engine/standing.ts';
import { whenMigrated } from '../projections/engine/when-migrated.ts';
import { projections } from '../projections/projections.ts';
import { unfinishedTasks } from '../projections/tasks/unfinished.ts';
import { createDispatcher } from './dispatch/dispatcher.ts';
import { dispatcherReadings } from './dispatch/readings.ts';
import { TaskledgerError } from './domain/errors.ts';
import { askDispatcher } from './http/explain.ts';
import { createHealth, type HealthCheck } from './http/health.ts';
import { createHttpServer } from './http/server.ts';
import { createBacklog } from './intake/backlog.ts';
import { createGateway, INTAKE_CONSUMER } from './intake/gateway.ts';
import { createIntake } from './intake/intake.ts';
import { openSharedIntake } from './intake/shared.ts';
import { createUnserved } from './intake/unserved.ts';
import { type OpenedLog, openLog } from './log/open.ts';
import { createLogReader } from './log/reader.ts';
import { clockOfServers, type ServerClock } from './log/server-clock.ts';
import { ensureStreams } from './log/streams.ts';
import { createStreamsCheck, type StreamsCheck } from './log/streams-check.ts';
import { type Names, names as namesOf } from './log/subjects.ts';
import { createFlowCheck, type FlowCheck } from './observe/flow-check.ts';
import { createHealthListener } from './observe/health-listener.ts';
import { createLogger, type Logger } from './observe/log.ts';
import { createMetrics, readingsText } from './observe/metrics.ts';
import type { Reading } from './observe/signals.ts';
import { cancelTasks } from './operations/cancel-tasks.ts';
import { openOperations } from './operations/operations.ts';
import { replayLetters } from './operations/replay-letters.ts';
import { createOperationRunner } from './operations/runner.ts';
import { monotonicClock, systemClock } from './platform/clock.ts';
import { type Config, loadConfig } from './platform/config.ts';
import { connectNats } from './platform/nats.ts';
import { type NatsWatch, watchNats } from './platform/nats-watch.ts';
import { type Patience, patiently, sparingly } from './platform/patience.ts';
import { createPool } from './platform/postgres.ts';
import { fail, runProcess } from './platform/process.ts';
import { type Service, serviceGroup } from './platform/service.ts';
import { within } from './platform/within.ts';
import { createQuery } from './query/postgres-query.ts';
import { ALL_TENANTS } from './registry/keys.ts';
import { openRegistry, type Registry } from './registry/registry.ts';
import { openWorkers } from './registry/workers.ts';
import { createStreamsDesk } from './retention/desk.ts';
import { createNeedsReporter } from './retention/needs-reporter.ts';
import { openRetentionRecords } from './retention/records.ts';
import { refuseLoss } from './retention/shrinking.ts';
import { createRetentionWatch } from './retention/watch.ts';
import { createScheduler } from './schedules/scheduler.ts';
import { openSchedules } from './schedules/schedules.ts';

/** What a process can be; `all` stands for the three of them. */
export const ROLES = ['projector', 'dispatcher', 'api'] as const;
export type Role = (typeof ROLES)[number];

interface Parts {
  readonly config: Config;
  readonly nc: NatsConnection;
  readonly natsWatch: NatsWatch;
  readonly names: Names;
  readonly log: OpenedLog;
  /** The clock of this host decides nothing. */
  readonly clock: ServerClock;
  readonly logger: Logger;
  readonly flow: FlowCheck;
  readonly streamsCheck: StreamsCheck;
  /** Consumers that the roles of this process draw from. */
  readonly consumers: { readonly stream: string; readonly consumer: string }[];
  /** What the roles of this process tell of themselves; each adds its own. */
  readonly told: {
    readonly readings: (() => readonly Reading[])[];
    readonly checks: Record<string, () => HealthCheck>;
  };
}

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
    const patience: Patience = {
      forMs: config.startTimeoutMs,
      signal: stopping,
      onFailure(error) {
        standing.waitsFor = error.message;
        say(error);
      },
    };
    const connected = await patiently(() => connectNats(config, `taskledger ${roles.join('+')}`), patience);
    nc = connected;
    const natsWatch = watchNats(nc, logger);
    standing.waitsFor = 'starting';
    const names = namesOf(config.prefix);
    // The servers' time is not known yet; an hour more or less is nothing to a limit of days.
    const beforeShrinking = refuseLoss({ nc, names, config, clock: systemClock, logger });
    const clock = clockOfServers(nc, names);
    const log = await patiently(async () => {
      await ensureStreams({ nc: connected, names, config, logger, beforeShrinking });
      return openLog({ nc: connected, names, config, logger });
    }, patience);
    const flow = createFlowCheck({ nc, backlog: names.backlog, workers: names.buckets.workers });
    const told = { readings: [], checks: {} };
    const consumers: Parts['consumers'] = [];
    const streamsCheck = createStreamsCheck({ nc, names, consumers: () => consumers });
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
    const group = serviceGroup('taskledger', [listener, connectionOf(parts), clock, flow, ...services]);
    await group.start();
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

async function apiRole(parts: Parts): Promise<Service> {
  const { config, nc, natsWatch, names, log, clock, logger, flow, streamsCheck, told } = parts;
  parts.consumers.push({ stream: names.streams.submissions, consumer: INTAKE_CONSUMER });
  const metrics = createMetrics(() => told.readings.flatMap((readings) => readings()));
  const registry = openRegistry({ nc, names, logger });
  const schedules = openSchedules({ nc, names, logger });
  const backlog = createBacklog({
    nc,
    names,
    clock: monotonicClock,
    logger,
    limitOf: (type) => registry.types.get(type)?.maxBacklog ?? config.maxBacklog,
    delayedLimit: config.maxDelayed,
    tenantLimitOf: (tenant) => registry.tenants.get(tenant)?.maxBacklog,
  });
  const observe = (via: string) => (outcome: string, ms: number) => metrics.submission(via, outcome, ms);
  const unserved = createUnserved({ nc, names, clock: monotonicClock });
  metrics.watchUnserved(() => unserved.all());
  const { tenants, types } = registry;
  const { rates, windows } = openSharedIntake({ nc, names, clock, logger, tenants, types });
  const intake = { log, types, config, clock, backlog, rates, windows };
  const gateway = createGateway({
    nc,
    names,
    intake: createIntake(intake),
    backlog,
    tenants,
    logger,
    // The gateway sees outcomes that intake does not: misaddressed and deferred messages.
    observe: observe('nats'),
  });
  const pool = createPool(config, 'taskledger api');
  const lastSeq = async (): Promise<number> => (await log.bounds()).lastSeq;
  const query = createQuery({ pool, nc, names, lastSeq, lookEveryMs: config.databaseLookEveryMs, logger });
  const workers = openWorkers({ nc, names });
  const streams = createStreamsDesk(openRetentionRecords({ nc, names, logger }));
  const operations = openOperations({ nc, names, clock, logger });
  const operationRunner = createOperationRunner({
    nc,
    names,
    operations,
    kinds: [cancelTasks({ log, clock, tasks: query }), replayLetters({ log, clock, letters: query })],
    leaseMs: config.leaderLeaseMs,
    clock,
    logger,
  });
  const http = await createHttpServer({
    config,
    intake: createIntake({
      ...intake,
      confirmWithinMs: config.httpSubmitTimeoutMs,
      observe: observe('http'),
    }),
    registry,
    schedules,
    query,
    projections: createProjectionDesk({
      pool,
      nc,
      names,
      projections: projections(config).map(({ name }) => name),
    }),
    operations,
    workers,
    explain: askDispatcher(nc, names.explain(config.dispatchGroup)),
    readLog: (options) => createLogReader({ nc, names, logger }, options),
    log,
    health: createHealth({ nc, natsWatch, names, query, flow, streams, streamsCheck }),
    streams,
    backlog,
    rates,
    unserved,
    metrics,
    clock,
    logger,
  });
  return serviceGroup('api', [
    registry,
    operatorKeyOf(config, registry, logger),
    schedules,
    backlog,
    unserved,
    poolOf(pool),
    query,
    workers,
    streams,
    operations,
    operationRunner,
    gateway,
    http,
  ]);
}

/** Sees to it that the installation has its first key. */
const operatorKeyOf = (config: Config, { keys }: Registry, logger: Logger): Service => ({
  name: 'operator key',
  async start() {
    const { operatorKey, operatorKeyFile } = config;
    const key =
      operatorKey ??
      (operatorKeyFile === undefined ? undefined : (await readFile(operatorKeyFile, 'utf8')).trim());
    if (key === undefined) return;
    const became = await keys.install(key, { tenant: ALL_TENANTS, scopes: ['admin'], name: 'operator' });
    if (became === 'revoked') logger.warn({}, 'the operator key of the configuration is revoked');
    else logger.info({ became }, 'the operator key of the configuration is in place');
  },
  stop: async () => {},
});

function dispatcherRole(parts: Parts): Service {
  const dispatcher = createDispatcher(parts);
  parts.told.readings.push(() => dispatcherReadings(dispatcher.stats()));
  parts.told.checks['dispatcher'] = () => ({
    ok: true,
    detail: dispatcher.isLeader() ? 'leads' : 'stands by',
  });
  const watch = createRetentionWatch(parts);
  parts.told.readings.push(() => watch.readings());
  return serviceGroup('dispatcher', [dispatcher, createScheduler(parts), watch]);
}

function projectorRole({ config, nc, names, logger, clock, told }: Parts): Service {
  const pool = createPool(
    { ...config, databaseTimeoutMs: config.projectorTimeoutMs, databasePoolSize: 1 },
    'taskledger projector',
  );
  const projector = createProjector({
    nc,
    names,
    config,
    pool,
    projections: projections(config),
    clock,
    logger,
  });
  told.readings.push(() => projectorReadings(projector.stats()));
  const longPool = createPool({ ...config, databaseTimeoutMs: LONG_WORK_MS }, 'taskledger rebuilder');
  const rebuilder = createRebuilder({
    nc,
    names,
    pool: longPool,
    projections: () => projections(config),
    clock,
    logger,
  });
  const needs = createNeedsReporter({
    nc,
    names,
    config,
    clock,
    logger,
    position() {
      const { mode, positions } = projector.stats();
      return mode === 'leading' ? Math.min(...Object.values(positions)) : undefined;
    },
    unfinished: () => unfinishedTasks(longPool),
  });
  const writers = whenMigrated(serviceGroup('projector', [projector, rebuilder, needs]), { config, logger });
  told.checks['projector'] = () => standingOf(projector.stats(), writers.waitsFor());
  return serviceGroup('projector', [poolOf(pool), poolOf(longPool), writers]);
}

/** Building an index or comparing a table of many millions of rows. */
const LONG_WORK_MS = 4 * 3_600_000;

const poolOf = (pool: { end(): Promise<void> }): Service => {
  let ended: Promise<void> | undefined;
  return { name: 'postgres', start: async () => {}, stop: () => (ended ??= pool.end()) };
};

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
