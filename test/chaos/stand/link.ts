import { startTcpProxy, type TcpProxy } from '../../support/tcp-proxy.ts';

/** The way from one part to another, through proxies that a fault can close. `name` is like `worker-3~nats`. */
export interface Link {
  readonly name: string;
  /** The ports that the near side dials, one for each target. */
  readonly ports: readonly number[];
  cut(): void;
  blackhole(): void;
  slow(delayMs: number): void;
  heal(): void;
  close(): Promise<void>;
}

/** A link to the given ports of the loopback interface. */
export async function openLink(name: string, targets: readonly number[]): Promise<Link> {
  return linkOver(name, await Promise.all(targets.map((port) => startTcpProxy({ port }))));
}

export function linkOver(name: string, proxies: readonly TcpProxy[]): Link {
  const each = (action: (proxy: TcpProxy) => void) => (): void => {
    for (const proxy of proxies) action(proxy);
  };
  return {
    name,
    ports: proxies.map(({ port }) => port),
    cut: each((proxy) => proxy.cut()),
    blackhole: each((proxy) => proxy.blackhole()),
    slow: (delayMs) => each((proxy) => proxy.pass({ delayMs }))(),
    heal: each((proxy) => proxy.pass()),
    close: async () => void (await Promise.all(proxies.map((proxy) => proxy.close()))),
  };
}
