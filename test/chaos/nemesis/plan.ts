import { randomOf } from '../../support/random-lives.ts';

export const FAULT_KINDS = [
  'kill',
  'pause',
  'restart',
  'cut',
  'blackhole',
  'mute',
  'deafen',
  'slow',
  'partition',
  'stepdown',
  'damage',
  'kill all brokers',
] as const;
export type FaultKind = (typeof FAULT_KINDS)[number];

/** Times in ms since the nemesis began. A step-down and a damage are over at once. */
export interface Fault {
  readonly kind: FaultKind;
  readonly target: string;
  readonly atMs: number;
  readonly untilMs: number;
  /** Of a slow link. */
  readonly delayMs?: number;
}

/** What can be hurt, by name. */
export interface Targets {
  readonly parts: readonly string[];
  readonly brokers: readonly string[];
  readonly links: readonly string[];
  /** Links between brokers. */
  readonly routes: readonly string[];
  /** Groups that have a leader. */
  readonly leaders: readonly string[];
  /** What can be thrown away, because it can be made again from the log. */
  readonly remakable: readonly string[];
}

/** Kills come often, because each is over in an instant; the whole cluster dies rarely, because everything waits for it. */
const WEIGHTS: Readonly<Record<FaultKind, number>> = {
  kill: 6,
  pause: 4,
  restart: 3,
  cut: 3,
  blackhole: 2,
  mute: 1.5,
  deafen: 1.5,
  slow: 3,
  partition: 2,
  stepdown: 4,
  damage: 1.5,
  'kill all brokers': 0.4,
};
const GAP_MS = { least: 500, most: 4_000 };
const DURATION_MS = { least: 500, most: 9_000 };
const DELAY_MS = { least: 20, most: 300 };
/** Of the process and link faults, a third hit a broker or its peers; there are many more other targets. */
const BROKER_SHARE = 1 / 3;

/**
 * The faults of a run: a pure function of the seed. At most one broker is hurt at a time, so that a quorum is there
 * except when all die at once; no target is hurt twice at a time, and every fault ends within the run.
 */
export function planFaults(options: {
  readonly seed: number;
  readonly lengthMs: number;
  readonly targets: Targets;
}): Fault[] {
  const { lengthMs, targets } = options;
  const dice = randomOf(options.seed);
  const between = ({ least, most }: { least: number; most: number }): number =>
    Math.round(least + dice() * (most - least));
  const one = (names: readonly string[]): string => names[Math.floor(dice() * names.length)] ?? '';
  const busyUntil = new Map<string, number>();
  const faults: Fault[] = [];
  for (let atMs = between(GAP_MS); atMs < lengthMs; atMs += between(GAP_MS)) {
    const kind = weighted(dice());
    const target = targetOf(kind, targets, one, dice());
    const untilMs = isInstant(kind) ? atMs : atMs + between(DURATION_MS);
    const delayMs = between(DELAY_MS);
    const claims = claimsOf(kind, target, targets);
    if (target === '' || untilMs > lengthMs || claims.some((claim) => (busyUntil.get(claim) ?? -1) >= atMs))
      continue;
    for (const claim of claims) busyUntil.set(claim, untilMs);
    faults.push({ kind, target, atMs, untilMs, ...(kind === 'slow' ? { delayMs } : {}) });
  }
  return faults;
}

const BROKERS = 'brokers';
const isInstant = (kind: FaultKind): boolean => kind === 'stepdown' || kind === 'damage';

function targetOf(
  kind: FaultKind,
  { parts, brokers, links, routes, leaders, remakable }: Targets,
  one: (names: readonly string[]) => string,
  dice: number,
): string {
  switch (kind) {
    case 'kill':
    case 'pause':
    case 'restart':
      return one(dice < BROKER_SHARE && brokers.length > 0 ? brokers : parts);
    case 'cut':
    case 'blackhole':
      return one(links);
    case 'mute':
    case 'deafen':
    case 'slow':
      return one([...links, ...routes]);
    case 'partition':
      return one(routes);
    case 'stepdown':
      return one(leaders);
    case 'damage':
      return one(remakable);
    case 'kill all brokers':
      return BROKERS;
    default:
      return kind satisfies never;
  }
}

/** What must not be hurt by another fault at the same time. */
const claimsOf = (kind: FaultKind, target: string, { brokers, routes }: Targets): readonly string[] =>
  isInstant(kind) ? [] : [target, ...(brokers.includes(target) || routes.includes(target) ? [BROKERS] : [])];

function weighted(dice: number): FaultKind {
  const total = FAULT_KINDS.reduce((sum, kind) => sum + WEIGHTS[kind], 0);
  let left = dice * total;
  for (const kind of FAULT_KINDS) {
    left -= WEIGHTS[kind];
    if (left < 0) return kind;
  }
  return 'kill';
}
