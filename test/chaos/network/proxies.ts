import { freePort } from '../../../src/platform/embedded/ports.ts';
import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';
import type { Door, Link, Network, Peer } from './network.ts';

const LOOPBACK = '127.0.0.1';

/** Everything on the loopback interface, and a TCP proxy for each way of a part to a server. Needs no rights. */
export function openProxies(): Network {
  const proxies: TcpProxy[] = [];
  const given = new Set<number>();
  /** One that no part was given: a part may bind its own only later. */
  const unusedPort = async (): Promise<number> => {
    const port = await freePort();
    if (given.has(port)) return unusedPort();
    given.add(port);
    return port;
  };
  const towards = async ({ port }: Door): Promise<TcpProxy> => {
    const proxy = await startTcpProxy({ port });
    proxies.push(proxy);
    return proxy;
  };
  return {
    kind: 'proxies',
    home: async (part) => ({ part, network: undefined, bind: LOOPBACK, port: unusedPort }),
    async open({ name, to }) {
      const outward = await Promise.all(to.map(towards));
      return linkOver({ name, outward, inward: [] });
    },
    async mesh(members) {
      const ways: { readonly from: Door; readonly to: Door; readonly proxy: TcpProxy }[] = [];
      for (const from of members)
        for (const to of members) if (from !== to) ways.push({ from, to, proxy: await towards(to) });
      return members.map((member): Peer => {
        const outward = ways.filter(({ from }) => from === member).map(({ proxy }) => proxy);
        const inward = ways.filter(({ to }) => to === member).map(({ proxy }) => proxy);
        const link = linkOver({ name: `${member.home.part}~peers`, outward, inward });
        return { link, dials: link.dials };
      });
    },
    close: async () => void (await Promise.all(proxies.map((proxy) => proxy.close()))),
  };
}

/** Over the proxies that the near side dials, and those by which it is dialled. */
function linkOver({
  name,
  outward,
  inward,
}: {
  readonly name: string;
  readonly outward: readonly TcpProxy[];
  readonly inward: readonly TcpProxy[];
}): Link {
  const each = (out: (proxy: TcpProxy) => void, back = out) => {
    return async (): Promise<void> => {
      outward.forEach(out);
      inward.forEach(back);
    };
  };
  return {
    name,
    dials: outward.map(({ port }) => `${LOOPBACK}:${port}`),
    cut: each((proxy) => proxy.cut()),
    blackhole: each((proxy) => proxy.blackhole()),
    mute: each(
      (proxy) => proxy.mute(),
      (proxy) => proxy.deaf(),
    ),
    deafen: each(
      (proxy) => proxy.deaf(),
      (proxy) => proxy.mute(),
    ),
    slow: (delayMs) => each((proxy) => proxy.pass({ delayMs }))(),
    heal: each((proxy) => proxy.pass()),
  };
}
