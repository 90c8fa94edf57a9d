import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { connect as dial } from 'node:net';
import { run } from './command.ts';
import { freeSubnet, leftovers, namespaceOf, type Owner, type Subnet, uplinkOf } from './layout.ts';
import { CLIENTS, type Door, type Home, type Link, type Network, type Peer } from './network.ts';
import { ipIn, Router } from './router.ts';

const REACHED_WITHIN_MS = 2_000;

/**
 * A network namespace for each part, joined by a router in one of its own, where every fault takes hold of packets as on
 * a real network. This process reaches it by one interface, which goes with the namespaces. Nothing else of the machine
 * is touched: no firewall, no forwarding, no route but that to the subnet.
 * @throws Error why it cannot be: no root, no tool, a kernel that lacks something
 */
export async function openNamespaces(): Promise<Network> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) throw new Error('they take Linux and root');
  await sweep();
  const owner: Owner = { pid: process.pid, word: randomBytes(2).toString('hex') };
  const routes = listOf<{ readonly dst: string }>(
    await run('ip', ['-j', '-4', 'route', 'show', 'table', 'all']),
  );
  const subnet = freeSubnet(
    routes.map(({ dst }) => dst),
    owner.pid,
  );
  if (subnet === undefined) throw new Error('no private subnet is free');
  const namespaces = new Namespaces(owner);
  try {
    const router = new Router(await namespaces.make('router'));
    await router.start(subnet);
    await joinOurselves(router, subnet, uplinkOf(owner));
    return networkOver(namespaces, router, subnet);
  } catch (error) {
    await namespaces.remove();
    throw error;
  }
}

function networkOver(namespaces: Namespaces, router: Router, subnet: Subnet): Network {
  const addresses = new Map([[CLIENTS, subnet.clients]]);
  const addressOf = (part: string): string => {
    const address = addresses.get(part);
    if (address === undefined) throw new Error(`${part} has no home`);
    return address;
  };
  const dialled = ({ home, port }: Door): string => `${addressOf(home.part)}:${port}`;
  const link = (name: string, from: string, to: readonly Door[]): Link => {
    const way = router.wayOf(
      addressOf(from),
      to.map(({ home }) => addressOf(home.part)),
    );
    return {
      name,
      dials: to.map(dialled),
      cut: () => router.hurt(name, way, 'cut'),
      blackhole: () => router.hurt(name, way, 'blackhole'),
      mute: () => router.hurt(name, way, 'mute'),
      deafen: () => router.hurt(name, way, 'deaf'),
      slow: (delayMs) => router.slow(name, way, delayMs),
      heal: () => router.heal(name),
    };
  };
  return {
    kind: 'namespaces',
    async home(part): Promise<Home> {
      const { ways, harness } = subnet.part(addresses.size - 1);
      addresses.set(part, ways);
      const namespace = await namespaces.make(part);
      const veth = ['type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace];
      await run('ip', ['link', 'add', part, 'netns', router.namespace, ...veth]);
      await ipIn(namespace, [
        'link set lo up',
        // A packet is no larger than on a wire, so that a slow way is slow for it.
        'link set eth0 gso_max_segs 1',
        `addr add ${ways}/32 dev eth0`,
        `addr add ${harness}/32 dev eth0`,
        'link set eth0 up',
        `route add ${subnet.cidr} via ${subnet.router} dev eth0 onlink src ${ways}`,
      ]);
      await router.plugIn(part, [ways, harness]);
      return {
        part,
        network: { namespace, address: harness },
        bind: '0.0.0.0',
        port: async (usual) => usual,
      };
    },
    open: async ({ name, from, to }) => link(name, from, to),
    mesh: async (members) =>
      members.map((member): Peer => {
        const { part } = member.home;
        const peer = link(
          `${part}~peers`,
          part,
          members.filter((other) => other !== member),
        );
        return { link: peer, dials: peer.dials };
      }),
    close: () => namespaces.remove(),
  };
}

/** Gives this process its interface, and makes sure that faults work and nothing of the machine is in the way. */
async function joinOurselves(router: Router, { router: gateway, clients, cidr }: Subnet, uplink: string) {
  await run('ip', [
    'link',
    'add',
    CLIENTS,
    'netns',
    router.namespace,
    'type',
    'veth',
    'peer',
    'name',
    uplink,
  ]);
  await run('ip', ['addr', 'add', `${clients}/32`, 'dev', uplink]);
  await run('ip', ['link', 'set', uplink, 'up']);
  await run('ip', ['route', 'add', cidr, 'via', gateway, 'dev', uplink, 'onlink', 'src', clients]);
  await router.plugIn(CLIENTS, [clients]);
  await router.tryOut(clients);
  if (!(await isReached(gateway))) throw new Error(`a firewall of this machine keeps ${cidr} away`);
}

/** Nothing listens on the discard port: to be refused is to be heard. */
const isReached = (host: string): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = dial({ host, port: 9, timeout: REACHED_WITHIN_MS });
    socket.once('error', (error: NodeJS.ErrnoException) => resolve(error.code === 'ECONNREFUSED'));
    socket.once('connect', () => resolve(true));
    socket.once('timeout', () => socket.destroy());
    socket.once('close', () => resolve(false));
  });

/** Those of one stand. They go at the latest with this process. */
class Namespaces {
  readonly #owner: Owner;
  readonly #made: string[] = [];
  /** An end without a stop, as by a second Ctrl+C. */
  readonly #onExit = (): void => {
    for (const name of this.#made) spawnSync('ip', ['netns', 'del', name]);
  };

  constructor(owner: Owner) {
    this.#owner = owner;
    process.once('exit', this.#onExit);
  }

  async make(part: string): Promise<string> {
    const name = namespaceOf(this.#owner, part);
    await run('ip', ['netns', 'add', name]);
    this.#made.push(name);
    return name;
  }

  /** The interfaces go with them. */
  async remove(): Promise<void> {
    process.off('exit', this.#onExit);
    await Promise.all(this.#made.splice(0).map((name) => run('ip', ['netns', 'del', name])));
  }
}

/** Takes away what runs left that could not tidy up. */
async function sweep(): Promise<void> {
  const there = listOf<{ readonly name: string }>(await run('ip', ['-j', 'netns', 'list']));
  const names = there.map(({ name }) => name);
  for (const name of leftovers(names, isAlive)) await run('ip', ['netns', 'del', name]);
}

/** `ip` writes nothing at all, or an empty object, of an empty list. */
const listOf = <T>(json: string): T[] =>
  (JSON.parse(json.trim() || '[]') as T[]).filter((each) => Object.keys(each as object).length > 0);

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return !(error instanceof Error && 'code' in error && error.code === 'ESRCH');
  }
}
