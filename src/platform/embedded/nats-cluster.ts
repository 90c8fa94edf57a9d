import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { TaskledgerError } from '../../domain/errors.ts';
import { type NatsServer, startNatsServer } from './nats-process.ts';
import { freePort } from './ports.ts';

const READY_TIMEOUT_MS = 60_000;

export interface ClusterOptions {
  readonly bin: string;
  readonly dir: string;
  /** Number of servers. */
  readonly size: number;
  readonly syncInterval?: string;
  readonly log?: (line: string) => void;
}

export interface ClusterNode {
  readonly name: string;
  readonly url: string;
  readonly port: number;
  /** `undefined` while it is not running. */
  pid(): number | undefined;
  stop(): Promise<void>;
  kill(signal?: NodeJS.Signals): Promise<void>;
  /** Starts it again with the same ports and store, after stopping it if need be. Does not wait for the cluster: see `whenReady`. */
  restart(): Promise<void>;
}

export interface NatsCluster {
  readonly nodes: readonly ClusterNode[];
  readonly urls: readonly string[];
  /** Waits until a stream replicated on every running node can be created: a meta leader is elected and has a quorum. */
  whenReady(timeoutMs?: number): Promise<void>;
  /** Stops every node. */
  stop(): Promise<void>;
}

/**
 * Starts `size` nats-servers that form one cluster on the loopback interface and waits until it is ready.
 * @throws TaskledgerError `server_start_failed`, `server_in_use`
 */
export async function startNatsCluster({
  bin,
  dir,
  size,
  syncInterval,
  log,
}: ClusterOptions): Promise<NatsCluster> {
  const ports = await distinctFreePorts(size * 2);
  const routes = ports.slice(size);
  const extras = { ...(syncInterval !== undefined && { syncInterval }), ...(log && { log }) };
  const nodes = await Promise.all(
    routes.map((routePort, index) => {
      const name = `n${index + 1}`;
      const cluster = {
        name: 'taskledger',
        port: routePort,
        routes: routes.map((port) => `127.0.0.1:${port}`),
      };
      return startNode(
        () =>
          startNatsServer({ bin, dir: join(dir, name), name, port: ports[index] ?? 0, cluster, ...extras }),
        name,
      );
    }),
  );
  const stop = async (): Promise<void> => void (await Promise.all(nodes.map((node) => node.stop())));
  const whenReady = (timeoutMs = READY_TIMEOUT_MS): Promise<void> => untilReady(nodes, timeoutMs);
  try {
    await whenReady();
  } catch (error) {
    await stop();
    throw error;
  }
  return { nodes, urls: nodes.map((node) => node.url), whenReady, stop };
}

async function startNode(start: () => Promise<NatsServer>, name: string): Promise<ClusterNode> {
  let server: NatsServer | undefined = await start();
  const { url, port } = server;
  const stop = async (): Promise<void> => {
    await server?.stop();
    server = undefined;
  };
  return {
    name,
    url,
    port,
    pid: () => server?.pid,
    stop,
    kill: async (signal) => {
      await server?.kill(signal);
      if (signal === undefined || signal === 'SIGKILL') server = undefined;
    },
    restart: async () => {
      await stop();
      server = await start();
    },
  };
}

async function distinctFreePorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await freePort());
  return [...ports];
}

async function untilReady(nodes: readonly ClusterNode[], timeoutMs: number): Promise<void> {
  let problem = 'no node is running';
  for (const deadline = Date.now() + timeoutMs; Date.now() < deadline; await delay(50)) {
    const running = nodes.filter((node) => node.pid() !== undefined);
    try {
      await createReplicatedStream(running.map((node) => node.url));
      return;
    } catch (error) {
      problem = error instanceof Error ? error.message : String(error);
    }
  }
  throw new TaskledgerError('server_start_failed', {
    server: 'the NATS cluster',
    reason: problem,
    logFile: 'the log of each node',
  });
}

/** Proves that the meta group has a leader and that every running node takes part. */
async function createReplicatedStream(urls: string[]): Promise<void> {
  // One name a size: an attempt that timed out after all may have left its stream, which the next one takes over.
  const name = `CLUSTER_PROBE_${urls.length}`;
  const connection = await connect({ servers: urls, reconnect: false, timeout: 1_000 });
  try {
    const jsm = await jetstreamManager(connection, { timeout: 1_000, checkAPI: false });
    await jsm.streams.add({ name, subjects: [`cluster-probe.${urls.length}`], num_replicas: urls.length });
    await jsm.streams.delete(name);
  } finally {
    await connection.close();
  }
}
