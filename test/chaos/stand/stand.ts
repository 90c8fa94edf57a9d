import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { SnapshotStore } from '../../../src/dispatch/snapshot/snapshot-store.ts';
import { ensureStreams } from '../../../src/log/streams.ts';
import { type Names, names as namesOf } from '../../../src/log/subjects.ts';
import { silentLogger as logger } from '../../../src/observe/log.ts';
import { type Config, loadConfig } from '../../../src/platform/config.ts';
import { migrate } from '../../../src/platform/migrate.ts';
import { connectNats } from '../../../src/platform/nats.ts';
import { openRegistry } from '../../../src/registry/registry.ts';
import { buildForTests } from '../../support/built.ts';
import { findTestNatsServer } from '../../support/local-backend.ts';
import { TENANT_SETTINGS, TENANTS, TYPES } from '../load/wishes.ts';
import type { NemesisParts } from '../nemesis/nemesis.ts';
import type { Targets } from '../nemesis/plan.ts';
import { type NetworkWish, openNetwork } from '../network/choose.ts';
import { CLIENTS, type NetworkKind } from '../network/network.ts';
import { type Brokers, startBrokers } from './brokers.ts';
import { type Database, startDatabase } from './database.ts';
import { Parts, type StandSize } from './parts.ts';
import { redeploy } from './redeploy.ts';
import type { Death } from './victim.ts';

/** The whole product on servers of its own, every way between two parts open to faults. */
export interface Stand extends NemesisParts {
  readonly network: NetworkKind;
  readonly targets: Targets;
  readonly names: Names;
  readonly config: Config;
  readonly database: Database;
  /** Of the harness itself: no fault is in its way. */
  readonly nc: NatsConnection;
  /** As clients reach NATS. */
  readonly clientNatsUrl: string;
  /** As clients reach the APIs. */
  readonly apis: readonly string[];
  readonly keys: ReadonlyMap<string, string>;
  readonly operatorKey: string;
  readonly deaths: readonly Death[];
  /** Gives every worker the release that it does not have yet, one after the other. */
  rollOut(release: number, signal: AbortSignal): Promise<void>;
  /** See redeploy.ts. */
  redeploy(how: 'one' | 'afresh'): Promise<void>;
  /** Whether a dispatcher that starts would find a snapshot. */
  hasSnapshot(): Promise<boolean>;
  stop(): Promise<void>;
}

/** Shorter than the defaults, so that a run of minutes sees many leases and leaders lost, and dispatchers start from snapshots. */
const SETTINGS = {
  TASKLEDGER_REPLICAS: '3',
  TASKLEDGER_ACK_WAIT_MS: '6000',
  TASKLEDGER_LEADER_LEASE_MS: '3000',
  TASKLEDGER_HTTP_RATE: '100000',
  TASKLEDGER_SNAPSHOT_MS: '3000',
  TASKLEDGER_SNAPSHOT_EVENTS: '100',
};
const READY_WITHIN_MS = 60_000;
/** The group that decides where streams and consumers live. It obeys the system account alone. */
const META = 'meta';

export async function openStand(options: {
  readonly dir: string;
  readonly size: StandSize;
  readonly network: NetworkWish;
  readonly log: (line: string) => void;
  readonly onDeath: (death: Death) => void;
}): Promise<Stand> {
  const { log } = options;
  const dir = join(options.dir, 'parts');
  await mkdir(dir, { recursive: true });
  // As root, Postgres runs as another user, who must be able to enter.
  await chmod(options.dir, 0o755);
  const deaths: Death[] = [];
  const onDeath = (death: Death): void => {
    deaths.push(death);
    options.onDeath(death);
  };
  const closing: (() => Promise<unknown>)[] = [];
  const stop = async (): Promise<void> => {
    for (const close of closing.splice(0).reverse()) await close();
  };
  try {
    await buildForTests();
    const { bin } = await findTestNatsServer(log);
    const network = await openNetwork(options.network, log);
    closing.push(() => network.close());
    const brokers = await startBrokers({ bin, dir: join(options.dir, 'nats'), network, log });
    closing.push(() => brokers.stop());
    const database = await startDatabase({ dir: join(options.dir, 'postgres'), network, log });
    closing.push(() => database.stop());
    const config = loadConfig({ ...SETTINGS, NATS_URL: brokers.url, DATABASE_URL: database.url });
    const names = namesOf(config.prefix);
    const nc = await connectNats(config, 'chaos harness');
    closing.push(() => nc.close());
    const { keys, operatorKey } = await prepare(nc, names, config);
    const parts = new Parts({ dir, network, brokers, database, env: SETTINGS, onDeath });
    closing.push(() => parts.stop());
    await parts.start(options.size);
    const clientNatsUrl = await parts.natsUrl(CLIENTS);
    for (const api of parts.apis) await untilReady(api);
    const servers = [...brokers.nodes, database].map((each) => [each.name, each] as const);
    return {
      network: network.kind,
      targets: targetsOf({ parts, brokers, database, names }),
      names,
      config,
      database,
      nc,
      clientNatsUrl,
      apis: parts.apis,
      keys,
      operatorKey,
      deaths,
      victims: new Map([...parts.victims, ...servers]),
      brokers: brokers.nodes,
      links: parts.links,
      ...leversOf({ nc, names, config, brokers, parts }),
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

function targetsOf(of: { parts: Parts; brokers: Brokers; database: Database; names: Names }): Targets {
  const { parts, brokers, database, names } = of;
  const { tasks, timers, history, submissions } = names.streams;
  const workConsumers = Object.keys(TYPES).map((type) => names.workConsumer(type));
  const leaders = [META, tasks, timers, history, submissions, `KV_${names.buckets.leaders}`];
  const routes = brokers.routes.map(({ name }) => name);
  return {
    parts: [...parts.victims.keys(), database.name],
    brokers: brokers.nodes.map(({ name }) => name),
    links: [...parts.links.keys()].filter((name) => !routes.includes(name)),
    routes,
    leaders: [...leaders, ...workConsumers.map((consumer) => `${tasks}.${consumer}`)],
    remakable: [timers, snapshotsOf(names), ...workConsumers],
  };
}

/** What can be done to the stand as a whole. */
function leversOf(of: {
  nc: NatsConnection;
  names: Names;
  config: Config;
  brokers: Brokers;
  parts: Parts;
}): Pick<Stand, 'stepDown' | 'damage' | 'redeploy' | 'rollOut' | 'hasSnapshot'> {
  const { nc, names, config, brokers, parts } = of;
  const snapshots = new SnapshotStore({ nc, names, config });
  const dispatchers = [...parts.victims].flatMap(([name, part]) =>
    name.startsWith('dispatcher') ? [part] : [],
  );
  return {
    stepDown: (group) => (group === META ? brokers.stepDownMeta() : stepDown(nc, group)),
    damage: (what) => damage(nc, names, what),
    redeploy: (how) => redeploy(dispatchers, how, () => damage(nc, names, snapshotsOf(names))),
    rollOut: (release, signal) => parts.rollOut(release, signal),
    hasSnapshot: async () => (await snapshots.list()).length > 0,
  };
}

async function prepare(nc: NatsConnection, names: Names, config: Config) {
  await migrate(config.databaseUrl, { logger });
  await ensureStreams({ nc, names, config, logger });
  const registry = openRegistry({ nc, names, logger });
  await registry.start();
  const keys = new Map<string, string>();
  for (const tenant of TENANTS) {
    const createdAt = new Date().toISOString();
    await registry.tenants.put({ name: tenant, createdAt, ...TENANT_SETTINGS[tenant] });
    keys.set(
      tenant,
      (await registry.keys.create({ tenant, scopes: ['submit', 'read', 'admin'], name: 'chaos' })).key,
    );
  }
  for (const [type, settings] of Object.entries(TYPES)) await registry.types.put({ type, ...settings });
  const operatorKey = (
    await registry.keys.create({ tenant: '*', scopes: ['admin', 'read', 'submit'], name: 'chaos' })
  ).key;
  await registry.stop();
  return { keys, operatorKey };
}

/** Timers fire again from the dispatcher's memory, consumers are made anew, and without a snapshot the log is read: README of src/dispatch. */
async function damage(nc: NatsConnection, names: Names, what: string): Promise<void> {
  const { streams } = names;
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  if (what === streams.timers || what === snapshotsOf(names)) await jsm.streams.purge(what);
  else await jsm.consumers.delete(streams.tasks, what);
}

const snapshotsOf = ({ snapshots }: Names): string => `OBJ_${snapshots}`;

/** A stream, or `stream.consumer`. */
async function stepDown(nc: NatsConnection, group: string): Promise<boolean> {
  const [stream = '', consumer] = group.split('.');
  const subject =
    consumer === undefined
      ? `$JS.API.STREAM.LEADER.STEPDOWN.${stream}`
      : `$JS.API.CONSUMER.LEADER.STEPDOWN.${stream}.${consumer}`;
  const answer = await nc.request(subject, '', { timeout: 5_000 });
  return answer.json<{ success?: boolean }>().success === true;
}

/** Waits until an API takes submissions. */
async function untilReady(api: string): Promise<void> {
  const jitterMs = 100;
  let problem = '';
  for (const deadline = Date.now() + READY_WITHIN_MS; Date.now() < deadline; ) {
    try {
      const response = await fetch(new URL('/readyz', api), { signal: AbortSignal.timeout(2_000) });
      if (response.ok) return;
      problem = `${response.status} ${await response.text()}`;
    } catch (error) {
      problem = String(error);
    }
    await new Promise((resolve) => setTimeout(resolve, jitterMs));
  }
  throw new Error(`the API at ${api} is not ready: ${problem}`);
}
