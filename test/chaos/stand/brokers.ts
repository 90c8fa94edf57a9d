import { join } from 'node:path';
import { connect } from '@nats-io/transport-node';
import { type NatsServer, startNatsServer } from '../../../src/platform/embedded/nats-process.ts';
import { addressesOf } from '../../../src/platform/embedded/network-home.ts';
import type { Door, Home, Link, Network } from '../network/network.ts';
import type { Victim } from './victim.ts';

/** Three nats-servers in one cluster. */
export interface Brokers {
  /** Where clients find them. */
  readonly doors: readonly Door[];
  /** For the harness itself: no fault is in its way. */
  readonly url: string;
  readonly nodes: readonly Victim[];
  /** `n1~peers`: all ways from and to the node. */
  readonly routes: readonly Link[];
  /** Asks the leader of the meta group to step down; true when it did. */
  stepDownMeta(): Promise<boolean>;
  stop(): Promise<void>;
}

const SIZE = 3;
const CLIENT_PORT = 4_222;
const CLUSTER_PORT = 6_222;
const SYSTEM = { user: 'system', password: 'chaos' };
const ANSWER_WITHIN_MS = 5_000;

export async function startBrokers(options: {
  readonly bin: string;
  readonly dir: string;
  readonly network: Network;
  readonly log: (line: string) => void;
}): Promise<Brokers> {
  const { bin, dir, network, log } = options;
  const homes: Home[] = [];
  for (let n = 1; n <= SIZE; n++) homes.push(await network.home(`n${n}`));
  const doors = await doorsAt(homes, CLIENT_PORT);
  const clusterDoors = await doorsAt(homes, CLUSTER_PORT);
  const peers = await network.mesh(clusterDoors);

  const nodes = homes.map(({ part, network: home }, index) =>
    nodeOf({
      bin,
      dir: join(dir, part),
      name: part,
      home,
      port: doors[index]?.port ?? 0,
      cluster: {
        name: 'taskledger',
        port: clusterDoors[index]?.port ?? 0,
        routes: peers[index]?.dials ?? [],
        gossip: false,
      },
      system: SYSTEM,
      log,
    }),
  );
  await Promise.all(nodes.map((node) => node.start()));
  const url = doors.map(({ home, port }) => `nats://${addressesOf(home.network).reach}:${port}`).join(',');
  return {
    doors,
    url,
    nodes,
    routes: peers.map(({ link }) => link),
    async stepDownMeta() {
      const nc = await connect({ servers: url.split(','), user: SYSTEM.user, pass: SYSTEM.password });
      try {
        const answer = await nc.request('$JS.API.META.LEADER.STEPDOWN', '', { timeout: ANSWER_WITHIN_MS });
        return answer.json<{ success?: boolean }>().success === true;
      } finally {
        await nc.close();
      }
    },
    stop: async () => void (await Promise.all(nodes.map((node) => node.stop()))),
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

async function doorsAt(homes: readonly Home[], usual: number): Promise<Door[]> {
  const doors: Door[] = [];
  for (const home of homes) doors.push({ home, port: await home.port(usual) });
  return doors;
}
