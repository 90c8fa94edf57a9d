import { canAccount, cpuSeconds, machineBusySeconds, residentMib } from './accounting.ts';

/** Process ids by the part they play: `nats`, `postgres`, `dispatcher`, `worker`, ... Descendants count with them. */
export type Parts = Readonly<Record<string, readonly number[]>>;

export interface Reading {
  readonly seconds: number;
  /** CPU seconds by part, in this interval. */
  readonly cpu: Readonly<Record<string, number>>;
  readonly peakMib: Readonly<Record<string, number>>;
  /** Cores that anything else on the machine used in this interval: a figure with much of it is not to be trusted. */
  readonly foreignCores: number | undefined;
}

export interface Meter {
  read(): Reading;
}

const MEMORY_SAMPLE_MS = 500;

/** Starts to count what the parts use. Parts that start later are not counted. */
export function startMeter(parts: Parts): Meter {
  if (!canAccount) {
    const startedAt = performance.now();
    return {
      read: () => ({
        seconds: (performance.now() - startedAt) / 1000,
        cpu: {},
        peakMib: {},
        foreignCores: undefined,
      }),
    };
  }
  const all: Parts = { ...parts, bench: [process.pid] };
  const startedAt = performance.now();
  const busyBefore = machineBusySeconds();
  const cpuBefore = cpuByPart(all);
  const peakMib: Record<string, number> = {};
  const sampleMemory = (): void => {
    for (const [part, pids] of Object.entries(parts)) {
      peakMib[part] = Math.max(peakMib[part] ?? 0, residentMib(pids));
    }
  };
  sampleMemory();
  const timer = setInterval(sampleMemory, MEMORY_SAMPLE_MS);
  return {
    read() {
      clearInterval(timer);
      sampleMemory();
      const seconds = (performance.now() - startedAt) / 1000;
      const cpuAfter = cpuByPart(all);
      const cpu = Object.fromEntries(
        Object.keys(all).map((part) => [part, (cpuAfter[part] ?? 0) - (cpuBefore[part] ?? 0)]),
      );
      const ours = Object.values(cpu).reduce((sum, value) => sum + value, 0);
      const foreignCores = Math.max(0, (machineBusySeconds() - busyBefore - ours) / seconds);
      const { bench: _, ...ofParts } = cpu;
      return { seconds, cpu: ofParts, peakMib, foreignCores };
    },
  };
}

/** The servers and loads are children of the bench itself: `bench` is its own process alone. */
function cpuByPart(parts: Parts): Record<string, number> {
  const usage = process.cpuUsage();
  return Object.fromEntries(
    Object.entries(parts).map(([part, pids]) => [
      part,
      part === 'bench' ? (usage.user + usage.system) / 1e6 : cpuSeconds(pids),
    ]),
  );
}
