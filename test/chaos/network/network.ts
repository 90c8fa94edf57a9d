import type { NetworkHome } from '../../../src/platform/embedded/network-home.ts';

export const NETWORK_KINDS = ['namespaces', 'proxies'] as const;
export type NetworkKind = (typeof NETWORK_KINDS)[number];

/** How the parts of a stand reach one another, and where a fault takes hold of it. */
export interface Network {
  readonly kind: NetworkKind;
  /** Where the part of this name lives. */
  home(part: string): Promise<Home>;
  /** The way of `from` (a part that has a home, or `clients`: this process) to servers. `name` is like `worker-3~nats`. */
  open(way: { readonly name: string; readonly from: string; readonly to: readonly Door[] }): Promise<Link>;
  /** The ways between servers that all dial one another: one link a member, `n1~peers`, of all ways from and to it. */
  mesh(members: readonly Door[]): Promise<readonly Peer[]>;
  /** Takes everything down. Whoever lives in it has ended before. */
  close(): Promise<void>;
}

export interface Home {
  readonly part: string;
  /** What it is when it is not the loopback interface. */
  readonly network: NetworkHome | undefined;
  /** The address that a server there binds. */
  readonly bind: string;
  /** A port for a server there: the usual one where the home is the part's alone. */
  port(usual: number): Promise<number>;
}

export interface Door {
  readonly home: Home;
  readonly port: number;
}

export interface Peer {
  readonly link: Link;
  /** `host:port` that the member dials. */
  readonly dials: readonly string[];
}

/** A way that a fault can take hold of. Each fault takes the place of the one before. */
export interface Link {
  readonly name: string;
  /** `host:port` that the near side dials, one for each server. */
  readonly dials: readonly string[];
  /** Whatever is said is answered by a reset. */
  cut(): Promise<void>;
  /** Whatever is said is lost. */
  blackhole(): Promise<void>;
  /** What the near side says is lost, what it is told arrives. */
  mute(): Promise<void>;
  /** What the near side is told is lost, what it says arrives. */
  deafen(): Promise<void>;
  slow(delayMs: number): Promise<void>;
  heal(): Promise<void>;
}

/** The name of this process on a way. */
export const CLIENTS = 'clients';
