import type { NatsConnection } from '@nats-io/transport-node';
import type { ProjectionDesk } from '../../projections/engine/rebuild/desk.ts';
import { TaskledgerError } from '../../src/domain/errors.ts';
import { askDispatcher } from '../../src/http/explain.ts';
import { createHealth } from '../../src/http/health.ts';
import type { HttpParts } from '../../src/http/parts.ts';
import { createHttpServer, type HttpServer } from '../../src/http/server.ts';
import { createBacklog } from '../../src/intake/backlog.ts';
import { createIntake } from '../../src/intake/intake.ts';
import { openSharedIntake } from '../../src/intake/shared.ts';
import { createUnserved } from '../../src/intake/unserved.ts';
import { openLog } from '../../src/log/open.ts';
import { createLogReader } from '../../src/log/reader.ts';
import { clockOfServers } from '../../src/log/server-clock.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { type Names, names } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { createMetrics } from '../../src/observe/metrics.ts';
import { openOperations } from '../../src/operations/operations.ts';
import { systemClock } from '../../src/platform/clock.ts';
import { type Config, loadConfig } from '../../src/platform/config.ts';
import { connectNats } from '../../src/platform/nats.ts';
import type { Query } from '../../src/query/query.ts';
import { openRegistry } from '../../src/registry/registry.ts';
import { openWorkers } from '../../src/registry/workers.ts';
import { createStreamsDesk } from '../../src/retention/desk.ts';
import { openRetentionRecords } from '../../src/retention/records.ts';
import { openSchedules } from '../../src/schedules/schedules.ts';
import { testNamespace, testNatsUrl } from './servers.ts';

/** Everything that takes submissions, on the shared NATS server, with keys of two tenants and of an operator. */
export async function startApi(
  fileUrl: string,
  {
    config: overrides = {},
    queryOn = () => absentQuery,
    projections = absentDesk,
    natsUrl = testNatsUrl(),
  }: {
    config?: Partial<Config>;
    queryOn?: (nc: NatsConnection, names: Names) => Query;
    projections?: ProjectionDesk;
    /** Of a proxy before the shared server. */
    natsUrl?: string;
  } = {},
) {
  const config: Config = {
    ...loadConfig({ NATS_URL: natsUrl, TASKLEDGER_PREFIX: testNamespace(fileUrl) }),
    httpPort: 0,
    ...overrides,
  };
  const nc = await connectNats(config, 'api under test');
  const subjects = names(config.prefix);
  const logger = silentLogger;
  await ensureStreams({ nc, names: subjects, config, logger });
  const log = await openLog({ nc, names: subjects, config, logger });
  const registry = openRegistry({ nc, names: subjects, logger });
  await registry.start();
  const schedules = openSchedules({ nc, names: subjects, logger });
  await schedules.start();
  const clock = systemClock;
  const backlog = createBacklog({
    nc,
    names: subjects,
    clock,
    logger,
    limitOf: (type) => registry.types.get(type)?.maxBacklog ?? config.maxBacklog,
    delayedLimit: config.maxDelayed,
    tenantLimitOf: (tenant) => registry.tenants.get(tenant)?.maxBacklog,
  });
  await backlog.start();
  const unserved = createUnserved({ nc, names: subjects, clock });
  await unserved.start();
  const metrics = createMetrics();
  const { tenants, types } = registry;
  const serverClock = clockOfServers(nc, subjects);
  await serverClock.start();
  const shared = openSharedIntake({
    nc,
    names: subjects,
    config,
    clock: serverClock,
    logger,
    tenants,
    types,
  });
  const intake = createIntake({
    log,
    types,
    rates: shared.rates,
    windows: shared.windows,
    config,
    clock,
    backlog,
    confirmWithinMs: config.httpSubmitTimeoutMs,
    observe: (outcome, ms) => metrics.submission('http', outcome, ms),
  });
  const query = queryOn(nc, subjects);
  const operations = openOperations({ nc, names: subjects, clock, logger });
  await operations.start();
  const workers = openWorkers({ nc, names: subjects });
  const streams = createStreamsDesk(openRetentionRecords({ nc, names: subjects, logger }));
  await streams.start();
  const health = createHealth({ nc, names: subjects, query });
  const parts: HttpParts = {
    config,
    intake,
    registry,
    query,
    projections,
    schedules,
    operations,
    workers,
    streams,
    explain: askDispatcher(nc, subjects.explain(config.dispatchGroup)),
    readLog: (options) => createLogReader({ nc, names: subjects, logger }, options),
    log,
    health,
    backlog,
    rates: shared.rates,
    unserved,
    metrics,
    clock,
    logger,
  };
  const http = await createHttpServer(parts);
  for (const name of ['acme', 'zeta'])
    await registry.tenants.put({ name, createdAt: new Date().toISOString() });
  const keyOf = async (tenant: string, scopes: readonly ('submit' | 'read' | 'admin')[]) =>
    (await registry.keys.create({ tenant, scopes, name: 'test' })).key;
  return {
    ...parts,
    names: subjects,
    nc,
    log,
    http,
    keyOf,
    keys: {
      acme: await keyOf('acme', ['submit', 'read']),
      zeta: await keyOf('zeta', ['submit', 'read']),
      operator: await keyOf('*', ['admin']),
    },
    async stop() {
      await http.stop();
      await operations.stop();
      await workers.stop();
      await streams.stop();
      await backlog.stop();
      await schedules.stop();
      await serverClock.stop();
      await unserved.stop();
      await registry.stop();
      await log.close();
      await nc.close();
    },
  };
}

export interface CallOptions {
  readonly key?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** An object is sent as JSON; a text or bytes as they are, with content type application/json. */
  readonly body?: unknown;
}

/** Calls a route without a socket. */
export async function call(
  http: HttpServer,
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE',
  url: string,
  { key, headers = {}, body }: CallOptions = {},
) {
  const raw = typeof body === 'string' || Buffer.isBuffer(body);
  const response = await http.app.inject({
    method,
    url,
    headers: {
      ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { payload: raw ? body : JSON.stringify(body) }),
  });
  return {
    status: response.statusCode,
    headers: response.headers,
    body: parsed(response.body) as Answer,
    text: response.body,
  };
}

/** An answer whose members a test reads freely. */
// biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
type Answer = any; // oxlint-disable-line typescript/no-explicit-any -- as above

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
};

const absent = async (): Promise<never> => {
  throw new TaskledgerError('read_model_unavailable', { reason: 'there is none' });
};
const absentDesk: ProjectionDesk = {
  status: absent,
  job: absent,
  rebuild: absent,
  verify: absent,
  build: absent,
  stop: absent,
  resume: absent,
  discard: absent,
};

/** Read models that are not there: for suites that only submit. */
export const absentQuery: Query = {
  task: async () => ({ position: 0, value: undefined }),
  taskAt: async () => ({ position: 0, value: undefined }),
  queuesAt: async () => ({ position: 0, value: [] }),
  tasks: async () => ({ position: 0, value: { items: [], nextCursor: null } }),
  countTasks: async () => ({ position: 0, value: 0 }),
  taskEvents: async () => ({ position: 0, value: { items: [], nextCursor: null } }),
  queues: async () => ({ position: 0, value: [] }),
  deadLetters: async () => ({ position: 0, value: { items: [], nextCursor: null } }),
  deadLetter: async () => ({ position: 0, value: undefined }),
  deadLetterGroups: async () => ({ position: 0, value: { items: [], nextCursor: null } }),
  deadLettersBetween: async () => [],
  countDeadLetters: async () => 0,
  deadLetterMemory: async () => undefined,
  position: async () => 0,
  waitFor: async () => {},
};
