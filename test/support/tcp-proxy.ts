import { once } from 'node:events';
import { createServer, connect as dial, type Socket } from 'node:net';

/**
 * What happens to bytes on their way, in both directions:
 * - `pass`: forwarded, after `delayMs` when set
 * - `cut`: every connection is reset, and new ones are reset as soon as they come
 * - `blackhole`: nothing is forwarded and nothing closed, as when a cable is pulled; new connections are accepted and
 *   hear nothing. What was swallowed is gone, so a connection that lived through it is reset when the mode changes.
 * - `mute`: half of that: what the client sends is swallowed, what is sent to it arrives
 * - `deaf`: the other half
 */
export type ProxyMode = 'pass' | 'cut' | 'blackhole' | 'mute' | 'deaf';

export interface TcpProxy {
  readonly port: number;
  readonly mode: () => ProxyMode;
  readonly pass: (options?: { delayMs?: number }) => void;
  readonly cut: () => void;
  readonly blackhole: () => void;
  readonly mute: () => void;
  readonly deaf: () => void;
  /** Number of open client connections. */
  readonly connections: () => number;
  /** Bytes that went into the blackhole so far. */
  readonly swallowedBytes: () => number;
  readonly close: () => Promise<void>;
}

/** A proxy on a free port of the loopback interface, for tests of network faults. Starts in mode `pass`. */
export async function startTcpProxy(target: {
  readonly host?: string;
  readonly port: number;
}): Promise<TcpProxy> {
  let mode: ProxyMode = 'pass';
  let delayMs = 0;
  let swallowed = 0;
  const links = new Set<Link>();

  const server = createServer((client) => {
    if (mode === 'cut') return void client.resetAndDestroy();
    const link = new Link(client, target, {
      mode: () => mode,
      delayMs: () => delayMs,
      swallow: (bytes) => {
        swallowed += bytes;
      },
    });
    links.add(link);
    link.onClose(() => links.delete(link));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the proxy listens on no port');

  const enter = (next: ProxyMode): void => {
    mode = next;
    for (const link of links) {
      if (next === 'cut' || (next === 'pass' && link.hasSwallowed)) link.reset();
    }
  };
  return {
    port: address.port,
    mode: () => mode,
    pass: (options = {}) => {
      delayMs = options.delayMs ?? 0;
      enter('pass');
    },
    cut: () => enter('cut'),
    blackhole: () => enter('blackhole'),
    mute: () => enter('mute'),
    deaf: () => enter('deaf'),
    connections: () => links.size,
    swallowedBytes: () => swallowed,
    close: async () => {
      for (const link of links) link.reset();
      server.close();
      await once(server, 'close');
    },
  };
}

interface Weather {
  readonly mode: () => ProxyMode;
  readonly delayMs: () => number;
  readonly swallow: (bytes: number) => void;
}

/** One client connection and its counterpart at the target. */
class Link {
  readonly #client: Socket;
  readonly #upstream: Socket;
  /** Bytes or an end of stream were dropped: the two sides no longer agree. */
  hasSwallowed = false;

  constructor(client: Socket, target: { host?: string; port: number }, weather: Weather) {
    this.#client = client;
    this.#upstream = dial({ host: target.host ?? '127.0.0.1', port: target.port, allowHalfOpen: true });
    for (const socket of [this.#client, this.#upstream]) {
      socket.setNoDelay(true);
      socket.on('error', () => {});
    }
    this.#forward(this.#client, this.#upstream, weather);
    this.#forward(this.#upstream, this.#client, weather);
  }

  /** Order is kept because every chunk of a direction waits for the one before it. */
  #forward(from: Socket, to: Socket, weather: Weather): void {
    let queue = Promise.resolve();
    const later = (bytes: number, action: () => void): void => {
      const dueAt = Date.now() + weather.delayMs();
      queue = queue.then(async () => {
        const waitMs = dueAt - Date.now();
        if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
        const mode = weather.mode();
        const isLost = mode === 'blackhole' || mode === (from === this.#client ? 'mute' : 'deaf');
        if (!isLost) return action();
        this.hasSwallowed = true;
        weather.swallow(bytes);
      });
    };
    from.on('data', (chunk) => later(chunk.length, () => void (to.destroyed || to.write(chunk))));
    from.on('end', () => later(0, () => to.end()));
    from.on('close', (hadError) => later(0, () => void (hadError ? to.resetAndDestroy() : to.end())));
  }

  onClose(listener: () => void): void {
    this.#client.once('close', listener);
  }

  reset(): void {
    this.#client.resetAndDestroy();
    this.#upstream.resetAndDestroy();
  }
}
