import { openNamespaces } from './namespaces.ts';
import { NETWORK_KINDS, type Network } from './network.ts';
import { openProxies } from './proxies.ts';

/** `auto`: namespaces where they can be had. */
export const NETWORK_WISHES = ['auto', ...NETWORK_KINDS] as const;
export type NetworkWish = (typeof NETWORK_WISHES)[number];

export const isNetworkWish = (text: string): text is NetworkWish =>
  NETWORK_WISHES.some((wish) => wish === text);

/** @throws Error when namespaces are asked for and cannot be had */
export async function openNetwork(wish: NetworkWish, log: (line: string) => void): Promise<Network> {
  if (wish !== 'proxies')
    try {
      const network = await openNamespaces();
      log('network: every part in a namespace of its own');
      return network;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      if (wish === 'namespaces') throw new Error(`no network namespaces: ${reason}`, { cause: error });
      log(`network: TCP proxies on the loopback interface, because there are no namespaces: ${reason}`);
      return openProxies();
    }
  log('network: TCP proxies on the loopback interface');
  return openProxies();
}
