/** Names and addresses of a stand in network namespaces, as pure functions. */

const PREFIX = 'tlchaos';
/** Above the router, this process and some room. */
const FIRST_PART = 10;
const PARTS = 110;
/** Of 256 subnets each. The last is reserved for measurements of networks: nobody lives there. */
const RANGES = ['10.231', '172.29', '192.168', '198.18'];

/** A run in its namespaces: the process that made them, and a word of its own, so that one process can have several. */
export interface Owner {
  readonly pid: number;
  /** At most four characters. */
  readonly word: string;
}

export const namespaceOf = ({ pid, word }: Owner, part: string): string => `${PREFIX}-${pid}-${word}-${part}`;

/** The network interface of this process; the kernel takes at most 15 characters. */
export const uplinkOf = ({ pid, word }: Owner): string => `tlc${pid}${word}`;

/** Namespaces, out of all there are, that a run left whose process is gone. */
export function leftovers(namespaces: readonly string[], isAlive: (pid: number) => boolean): string[] {
  const pattern = new RegExp(`^${PREFIX}-(\\d+)-`);
  return namespaces.filter((name) => {
    const pid = pattern.exec(name)?.[1];
    return pid !== undefined && !isAlive(Number(pid));
  });
}

/** The addresses of one stand. */
export interface Subnet {
  readonly cidr: string;
  readonly router: string;
  /** Of this process, as clients and as harness. */
  readonly clients: string;
  /** `ways`: where the parts dial it, and where it dials from. `harness`: where no fault is in the way of this process. */
  part(index: number): { readonly ways: string; readonly harness: string };
}

/**
 * A subnet that meets none of the routes there are, the search beginning at a place of the caller's choice, so that runs
 * that begin together differ.
 */
export function freeSubnet(routes: readonly string[], from: number): Subnet | undefined {
  const taken = routes.map(rangeOf).filter((range) => range !== undefined);
  for (const range of RANGES)
    for (let step = 0; step < 256; step++) {
      const base = `${range}.${(from + step) % 256}`;
      const [first, last] = rangeOf(`${base}.0/24`) ?? [0, 0];
      if (taken.every(([low, high]) => last < low || first > high)) return subnetOf(base);
    }
  return undefined;
}

function subnetOf(base: string): Subnet {
  return {
    cidr: `${base}.0/24`,
    router: `${base}.1`,
    clients: `${base}.2`,
    part(index) {
      if (index >= PARTS) throw new Error(`a stand has at most ${PARTS} parts`);
      const ways = FIRST_PART + index;
      return { ways: `${base}.${ways}`, harness: `${base}.${ways + PARTS}` };
    },
  };
}

/** First and last address of `a.b.c.d` or `a.b.c.d/n`; `undefined` of the default route and whatever else is no range. */
function rangeOf(route: string): readonly [number, number] | undefined {
  const match = /^(\d+)\.(\d+)\.(\d+)\.(\d+)(?:\/(\d+))?$/.exec(route);
  if (match === null) return undefined;
  const address = match.slice(1, 5).reduce((value, byte) => value * 256 + Number(byte), 0);
  const size = 2 ** (32 - Number(match[5] ?? 32));
  const first = Math.floor(address / size) * size;
  return [first, first + size - 1];
}
