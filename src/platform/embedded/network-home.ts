/**
 * Where a server lives that is not to be on the loopback interface: a network namespace, as `ip netns` names it, and
 * its address as this process reaches it. It listens on every address that the namespace has. Linux, as root.
 */
export interface NetworkHome {
  readonly namespace: string;
  readonly address: string;
}

const LOOPBACK = '127.0.0.1';

/** The address that a server binds, and the one at which this process reaches it. */
export const addressesOf = (home: NetworkHome | undefined): { bind: string; reach: string } =>
  home === undefined ? { bind: LOOPBACK, reach: LOOPBACK } : { bind: '0.0.0.0', reach: home.address };
