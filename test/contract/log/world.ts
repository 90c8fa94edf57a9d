import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { JetStreamApiCodes, JetStreamApiError, jetstreamManager } from '@nats-io/jetstream';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { type OpenedLog, openLog } from '../../../src/log/open.ts';
import { ensureStreams } from '../../../src/log/streams.ts';
import { type Names, names } from '../../../src/log/subjects.ts';
import { silentLogger } from '../../../src/observe/log.ts';
import { type Config, loadConfig } from '../../../src/platform/config.ts';
import { startNatsServer } from '../../../src/platform/embedded/nats-process.ts';
import { natsOptions } from '../../../src/platform/nats.ts';
import { eventually } from '../../support/eventually.ts';
import { findTestNatsServer } from '../../support/local-backend.ts';
import { startTestCluster, testNatsUrl } from '../../support/servers.ts';

/** Servers to hold the log, and what can happen to them. */
export interface World {
  readonly urls: readonly string[];
  readonly replicas: number;
  /** The server that answers for the log goes down hard and comes back; absent where the server is shared. */
  readonly crash?: (stream: string) => Promise<void>;
  readonly stop: () => Promise<void>;
}

export const sharedServer = async (): Promise<World> => ({
  urls: [testNatsUrl()],
  replicas: 1,
  stop: async () => {},
});

/** A single server that may be killed. */
export async function ownServer(): Promise<World> {
  const { bin } = await findTestNatsServer(() => {});
  const dir = await mkdtemp(join(tmpdir(), 'taskledger-log-'));
  let server = await startNatsServer({ bin, dir });
  const { url, port } = server;
  return {
    urls: [url],
    replicas: 1,
    crash: async () => {
      await server.kill();
      server = await startNatsServer({ bin, dir, port });
    },
    stop: async () => {
      await server.stop();
      await rm(dir, { recursive: true, force: true });
    },
  };
}

export async function cluster(): Promise<World> {
  const nodes = await startTestCluster({ size: 3 });
  return {
    urls: nodes.urls,
    replicas: 3,
    crash: async (stream) => {
      const leader = await eventually(() => leaderOf(nodes.urls, stream));
      const node = nodes.nodes.find(({ name }) => name === leader);
      if (node === undefined) throw new Error(`no node is called ${leader}`);
      await node.kill();
      await node.restart();
      await nodes.whenReady();
    },
    stop: () => nodes.stop(),
  };
}

/** A log with streams of its own, and connections to it. */
export interface Ground {
  readonly world: World;
  readonly names: Names;
  readonly config: Config;
  /** A connection of its own. */
  connect(url?: string): Promise<NatsConnection>;
  /** Another process's view: its own connection and publisher. */
  open(nc?: NatsConnection): Promise<OpenedLog>;
  /** Another node leads the stream from now on. */
  stepDown(stream: string): Promise<void>;
  /** Removes the streams and closes every connection. */
  clear(): Promise<void>;
}

let grounds = 0;

export async function prepare(world: World, namespace: string): Promise<Ground> {
  grounds += 1;
  const prefix = `${namespace.slice(0, -1)}x${grounds}_`;
  const config = { ...loadConfig({}), prefix, replicas: world.replicas, natsUrl: world.urls.join(',') };
  const logNames = names(prefix);
  const connections: NatsConnection[] = [];
  const logs: OpenedLog[] = [];
  const open = async (url = config.natsUrl): Promise<NatsConnection> => {
    const nc = await connect(natsOptions({ ...config, natsUrl: url }, 'contract'));
    connections.push(nc);
    return nc;
  };
  const admin = await open();
  await ensureStreams({ nc: admin, names: logNames, config, logger: silentLogger });
  return {
    world,
    names: logNames,
    config,
    connect: open,
    async open(nc) {
      const log = await openLog({ nc: nc ?? (await open()), names: logNames, config, logger: silentLogger });
      logs.push(log);
      return log;
    },
    async stepDown(stream) {
      const before = await leaderOf(world.urls, stream);
      await admin.request(`$JS.API.STREAM.LEADER.STEPDOWN.${stream}`, '', { timeout: 5_000 });
      for (;;) {
        const now = await leaderOf(world.urls, stream).catch(() => undefined);
        if (now !== undefined && now !== before) return;
      }
    },
    async clear() {
      const jsm = await jetstreamManager(admin, { checkAPI: false });
      for await (const { config: stream } of jsm.streams.list()) {
        if (!stream.name.replace(/^KV_/, '').startsWith(prefix)) continue;
        // After a crash the client may ask again for what was done, and a node list what is gone.
        await jsm.streams.delete(stream.name).catch((error: unknown) => {
          if (!(error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound))
            throw error;
        });
      }
      for (const log of logs) await log.close();
      for (const nc of connections) await nc.close();
    },
  };
}

/** Servers in an election drop what they are asked: rather ask again than wait. */
const ANSWER_MS = 500;

async function leaderOf(urls: readonly string[], stream: string): Promise<string | undefined> {
  const nc = await connect({ servers: [...urls], reconnect: false });
  try {
    const jsm = await jetstreamManager(nc, { checkAPI: false, timeout: ANSWER_MS });
    return (await jsm.streams.info(stream)).cluster?.leader;
  } finally {
    await nc.close();
  }
}
