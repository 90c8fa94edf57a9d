import { join } from 'node:path';
import { connect } from '@nats-io/transport-node';
import { type NatsServer, startNatsServer } from '../../../src/platform/embedded/nats-process.ts';
import { freePort } from '../../../src/platform/embedded/ports.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import { type Link, linkOver } from './link.ts';
import type { Victim } from './victim.ts';

/** Three nats-servers, each reaching each other one through a proxy of that way alone. */
export interface Brokers {
  readonly ports: readonly number[];
  /** For the harness itself: past all proxies. */
  readonly url: string;
  readonly nodes: readonly Victim[];
  /** `n1~peers`: all ways from and to the node. */
  readonly routes: readonly Link[];
  /** Asks the leader of the meta group to step down; true when it did. */
  stepDownMeta(): Promise<boolean>;
  stop(): Promise<void>;
}

const SIZE = 3;
const SYSTEM = { user: 'system', password: 'chaos' };
const ANSWER_WITHIN_MS = 5_000;

export async function startBrokers(bin: string, dir: string, log: (line: string) => void): Promise<Brokers> {
  const ports = await distinctPorts(2 * SIZE);
  const clientPorts = ports.slice(0, SIZE);
  const clusterPorts = ports.slice(SIZE);
  const ways = new Map<string, TcpProxy>();
  for (const from of clusterPorts.keys())
    for (const [to, port] of clusterPorts.entries())
      if (from !== to) ways.set(`${from}>${to}`, await startTcpProxy({ port }));

  const nodes = clientPorts.map((port, index) =>
    nodeOf({
      bin,
      dir: join(dir, `n${index + 1}`),
      name: `n${index + 1}`,
      port,
      cluster: {
        name: 'taskledger',
        port: clusterPorts[index] ?? 0,
        routes: [...ways].filter(([way]) => way.startsWith(`${index}>`)).map(([, { port: via }]) => via),
        gossip: false,
      },
      system: SYSTEM,
      log,
    }),
  );
  await Promise.all(nodes.map((node) => node.start()));
  const routes = nodes.map(({ name }, index) =>
    linkOver(
      `${name}~peers`,
      [...ways].filter(([way]) => way.includes(String(index))).map(([, way]) => way),
    ),
  );
  const url = clientPorts.map((port) => `nats://127.0.0.1:${port}`).join(',');
  return {
    ports: clientPorts,
    url,
    nodes,
    routes,
    async stepDownMeta() {
      const nc = await connect({ servers: url.split(','), user: SYSTEM.user, pass: SYSTEM.password });
      try {
        const answer = await nc.request('$JS.API.META.LEADER.STEPDOWN', '', { timeout: ANSWER_WITHIN_MS });
        return answer.json<{ success?: boolean }>().success === true;
      } finally {
        await nc.close();
      }
    },
    async stop() {
      await Promise.all(nodes.map((node) => node.stop()));
      await Promise.all([...ways.values()].map((way) => way.close()));
    },
  };
}

function nodeOf(options: Parameters<typeof startNatsServer>[0] & { readonly name: string }): Victim {
  let server: NatsServer | undefined;
  return {
    name: options.name,
    async start() {
      server ??= await startNatsServer(options);
    },
    async stop() {
      await server?.stop();
      server = undefined;
    },
    async kill() {
      await server?.kill('SIGKILL');
      server = undefined;
    },
    pause: async () => server?.kill('SIGSTOP'),
    resume: async () => server?.kill('SIGCONT'),
  };
}

async function distinctPorts(count: number): Promise<number[]> {
  const ports = new Set<number>();
  while (ports.size < count) ports.add(await freePort());
  return [...ports];
}
