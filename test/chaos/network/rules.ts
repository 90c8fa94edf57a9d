/** What a fault means to the router between the parts, as texts for `nft` and `tc`. Pure. */

/** A way through the router. `lane` is the traffic class in which it goes while it is slow. */
export interface Way {
  readonly near: string;
  readonly far: readonly string[];
  readonly lane: number;
}
export type WayFault = 'cut' | 'blackhole' | 'mute' | 'deaf' | 'slow';

/** How a kernel slows a lane: `netem` holds every packet back, `tbf` lets so little through that a full packet takes as long. */
export type Brake = 'netem' | 'tbf';

const CHAIN = 'inet chaos ways';

/** Puts the rules of all present faults in the place of those before, in one step. */
export function rulesText(faults: Iterable<{ readonly way: Way; readonly fault: WayFault }>): string {
  return [
    'add table inet chaos',
    `add chain ${CHAIN} { type filter hook forward priority 0; policy accept; }`,
    `flush chain ${CHAIN}`,
    ...[...faults]
      .flatMap(({ way, fault }) => rulesOf(way, fault))
      .map((rule) => `add rule ${CHAIN} ${rule}`),
    '',
  ].join('\n');
}

function rulesOf({ near, far, lane }: Way, fault: WayFault): string[] {
  const others = `{ ${far.join(', ')} }`;
  const out = `ip saddr ${near} ip daddr ${others}`;
  const back = `ip saddr ${others} ip daddr ${near}`;
  const both = (verdict: string): string[] => [`${out} ${verdict}`, `${back} ${verdict}`];
  switch (fault) {
    case 'cut':
      return both('meta l4proto tcp reject with tcp reset');
    case 'blackhole':
      return both('drop');
    case 'mute':
      return [`${out} drop`];
    case 'deaf':
      return [`${back} drop`];
    case 'slow':
      return both(`meta priority set ${classOf(lane)}`);
    default:
      return fault satisfies never;
  }
}

const classOf = (lane: number): string => `1:${lane.toString(16)}`;

/** A port of the router: without a fault its packets are in no class and wait for nothing. */
export const portText = (port: string): string => `qdisc replace dev ${port} root handle 1: htb default 0\n`;

/** Whatever fits into a lane but for its brake. */
const WIDE = 'rate 1gbit quantum 60000';
const FULL_PACKET_BITS = 1_500 * 8;
/** What has waited this many times the delay is dropped, as a router does whose buffer is full. */
const WAITS = 20;

/** The lanes at the ports where the way's two ends are, each of them one direction. */
export function laneText(options: {
  readonly ports: readonly string[];
  readonly lane: number;
  readonly brake: Brake;
  readonly delayMs: number;
}): string {
  const { lane, delayMs } = options;
  const brake =
    options.brake === 'netem'
      ? `netem delay ${delayMs}ms limit 10000`
      : `tbf rate ${Math.ceil((FULL_PACKET_BITS * 1_000) / delayMs)}bit burst 1600 latency ${WAITS * delayMs}ms`;
  return options.ports
    .flatMap((port) => [
      `class replace dev ${port} parent 1: classid ${classOf(lane)} htb ${WIDE}`,
      `qdisc replace dev ${port} parent ${classOf(lane)} ${brake}`,
    ])
    .map((line) => `${line}\n`)
    .join('');
}
