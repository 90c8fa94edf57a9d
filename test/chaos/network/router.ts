import { run, runIn } from './command.ts';
import type { Subnet } from './layout.ts';
import { type Brake, laneText, portText, rulesText, type Way, type WayFault } from './rules.ts';

/** The namespace between all parts. Owns the faults: its rules are always those of `#faults`. */
export class Router {
  readonly namespace: string;
  readonly #faults = new Map<string, { readonly way: Way; readonly fault: WayFault }>();
  /** Network interface by the address that is behind it. */
  readonly #ports = new Map<string, string>();
  #brake: Brake = 'tbf';
  #lanes = 0;
  #lastChange: Promise<unknown> = Promise.resolve();

  constructor(namespace: string) {
    this.namespace = namespace;
  }

  async start({ router }: Subnet): Promise<void> {
    await ipIn(this.namespace, ['link set lo up', `addr add ${router}/32 dev lo`]);
    // Of this namespace alone, not of the machine.
    await runIn(this.namespace, ['sh', '-c', 'echo 1 > /proc/sys/net/ipv4/ip_forward']);
  }

  /** Joins an interface that is in the namespace already, and what lives behind it. */
  async plugIn(port: string, addresses: readonly string[]): Promise<void> {
    const routes = addresses.map((address) => `route add ${address}/32 dev ${port}`);
    await ipIn(this.namespace, [`link set ${port} up`, ...routes]);
    await this.#tc(portText(port));
    for (const address of addresses) this.#ports.set(address, port);
  }

  /** Every kind of fault once, so that a kernel that lacks one is known before the run. */
  async tryOut(address: string): Promise<void> {
    const way = this.wayOf(address, [address]);
    await this.#nft((['cut', 'blackhole', 'slow'] as const).map((fault) => ({ way, fault })));
    await this.#nft([]);
    const brake = (kind: Brake): Promise<void> => this.#prepareLane(way, kind, 1);
    this.#brake = await brake('netem').then(
      () => 'netem' as const,
      () => 'tbf' as const,
    );
    await brake(this.#brake);
  }

  wayOf(near: string, far: readonly string[]): Way {
    this.#lanes += 1;
    return { near, far, lane: this.#lanes };
  }

  async hurt(name: string, way: Way, fault: WayFault): Promise<void> {
    this.#faults.set(name, { way, fault });
    await this.#enforce();
  }

  async slow(name: string, way: Way, delayMs: number): Promise<void> {
    await this.#prepareLane(way, this.#brake, delayMs);
    await this.hurt(name, way, 'slow');
  }

  async heal(name: string): Promise<void> {
    if (this.#faults.delete(name)) await this.#enforce();
  }

  /** One change after the other, each with the faults of its own time. */
  #enforce(): Promise<unknown> {
    const change = this.#lastChange.catch(() => undefined).then(() => this.#nft([...this.#faults.values()]));
    this.#lastChange = change;
    return change;
  }

  async #prepareLane({ near, far, lane }: Way, brake: Brake, delayMs: number): Promise<void> {
    const ports = [near, ...far]
      .map((address) => this.#ports.get(address))
      .filter((port) => port !== undefined);
    await this.#tc(laneText({ ports, lane, brake, delayMs }));
  }

  #tc(text: string): Promise<string> {
    return runIn(this.namespace, ['tc', '-batch', '-'], text);
  }

  #nft(faults: readonly { readonly way: Way; readonly fault: WayFault }[]): Promise<string> {
    return runIn(this.namespace, ['nft', '-f', '-'], rulesText(faults));
  }
}

export const ipIn = (namespace: string, commands: readonly string[]): Promise<string> =>
  run('ip', ['-n', namespace, '-batch', '-'], `${commands.join('\n')}\n`);
