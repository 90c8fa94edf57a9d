import { createProjectionDesk } from '../../projections/engine/rebuild/desk.ts';
import { projections } from '../../projections/projections.ts';
import { askDispatcher } from '../http/explain.ts';
import { createHealth } from '../http/health.ts';
import { createHttpServer } from '../http/server.ts';
import { type Backlog, createBacklog } from '../intake/backlog.ts';
import { createGateway } from '../intake/gateway.ts';
import { createIntake } from '../intake/intake.ts';
import { INTAKE_CONSUMER } from '../intake/intake-consumer.ts';
import { openSharedIntake } from '../intake/shared.ts';
import { createUnserved } from '../intake/unserved.ts';
import { createLogReader } from '../log/reader.ts';
import { createMetrics, type Metrics } from '../observe/metrics.ts';
import { cancelTasks } from '../operations/cancel-tasks.ts';
import { type Operations, openOperations } from '../operations/operations.ts';
import { replayLetters } from '../operations/replay-letters.ts';
import { createOperationRunner, type OperationRunner } from '../operations/runner.ts';
import { monotonicClock } from '../platform/clock.ts';
import { createPool } from '../platform/postgres.ts';
import { type Service, serviceGroup } from '../platform/service.ts';
import { createQuery } from '../query/postgres-query.ts';
import type { Query } from '../query/query.ts';
import { openRegistry, type Registry } from '../registry/registry.ts';
import { openWorkers } from '../registry/workers.ts';
import { createStreamsDesk } from '../retention/desk.ts';
import { openRetentionRecords } from '../retention/records.ts';
import { openSchedules } from '../schedules/schedules.ts';
import { operatorKeyOf } from './operator-key.ts';
import type { Parts } from './parts.ts';
import { poolOf } from './pool.ts';

/** The doors: HTTP and `submit.>`, and what is done to many tasks at once. */
export async function apiRole(parts: Parts): Promise<Service> {
  const { config, names, log, clock, logger, told } = parts;
  const metrics = createMetrics(() => told.readings.flatMap((readings) => readings()));
  const registry = openRegistry(parts);
  const schedules = openSchedules(parts);
  const workers = openWorkers(parts);
  const streams = createStreamsDesk(openRetentionRecords(parts));
  const unserved = createUnserved({ ...parts, clock: monotonicClock });
  metrics.watchUnserved(() => unserved.all());
  const { pool, query, desk } = openReadModels(parts);
  const { backlog, rates, gateway, intake } = openIntake(parts, registry, metrics);
  const { operations, runner } = openOperationsOver(parts, query);
  const http = await createHttpServer({
    config,
    intake,
    registry,
    schedules,
    query,
    projections: desk,
    operations,
    workers,
    explain: askDispatcher(parts.nc, names.explain(config.dispatchGroup)),
    readLog: (options) => createLogReader(parts, options),
    log,
    health: createHealth({ ...parts, query, streams }),
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
    runner,
    gateway,
    http,
  ]);
}

/** Intake behind both doors: they share what is full, the rates and the keys, and differ in how long they wait for the log. */
function openIntake(parts: Parts, registry: Registry, metrics: Metrics) {
  const { config, names, log, clock } = parts;
  const { tenants, types } = registry;
  const backlog = openBacklog(parts, registry);
  const { rates, windows } = openSharedIntake({ ...parts, tenants, types });
  const common = { log, types, config, clock, backlog, rates, windows };
  const observe = (via: string) => (outcome: string, ms: number) => metrics.submission(via, outcome, ms);
  parts.consumers.push({ stream: names.streams.submissions, consumer: INTAKE_CONSUMER });
  const gateway = createGateway({
    ...parts,
    intake: createIntake(common),
    backlog,
    tenants,
    maxParked: config.maxParked,
    // The gateway sees outcomes that intake does not: misaddressed and deferred messages.
    observe: observe('nats'),
  });
  const intake = createIntake({
    ...common,
    confirmWithinMs: config.httpSubmitTimeoutMs,
    unstored: () => log.publisher.trouble(),
    observe: observe('http'),
  });
  return { backlog, rates, gateway, intake };
}

const openBacklog = (parts: Parts, { tenants, types }: Registry): Backlog =>
  createBacklog({
    ...parts,
    clock: monotonicClock,
    limitOf: (type) => types.get(type)?.maxBacklog ?? parts.config.maxBacklog,
    delayedLimit: parts.config.maxDelayed,
    tenantLimitOf: (tenant) => tenants.get(tenant)?.maxBacklog,
  });

/** What is read from Postgres, and the desk where work on the read models is asked for. */
function openReadModels({ config, nc, names, log, logger }: Parts) {
  const pool = createPool(config, 'taskledger api');
  const lastSeq = async (): Promise<number> => (await log.bounds()).lastSeq;
  const query = createQuery({ pool, nc, names, lastSeq, lookEveryMs: config.databaseLookEveryMs, logger });
  const known = projections(config).map(({ name }) => name);
  const desk = createProjectionDesk({ postgres: query.postgres, nc, names, projections: known });
  return { pool, query, desk };
}

function openOperationsOver(
  parts: Parts,
  query: Query,
): { readonly operations: Operations; readonly runner: OperationRunner } {
  const { config, log, clock } = parts;
  const operations = openOperations(parts);
  const runner = createOperationRunner({
    ...parts,
    operations,
    kinds: [cancelTasks({ log, clock, tasks: query }), replayLetters({ log, clock, letters: query })],
    leaseMs: config.leaderLeaseMs,
  });
  return { operations, runner };
}
