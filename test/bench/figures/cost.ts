import { round } from '../figure.ts';
import type { Bench } from '../measurement.ts';
import type { Reading } from '../meter.ts';

const PER_TASKS = 10_000;
const UNIT = 'CPU s/10k tasks';

/** CPU seconds of every process for 10 000 tasks: `<name>_<part>` each, and `<name>` in all. */
export function reportCpu(bench: Bench, name: string, { cpu, foreignCores }: Reading, tasks: number): void {
  const perTenThousand = (seconds: number): number => round((seconds / tasks) * PER_TASKS, 2);
  const parts = Object.entries(cpu);
  if (parts.length === 0) return;
  for (const [part, seconds] of parts) bench.report(`${name}_${part}`, perTenThousand(seconds), UNIT, {});
  const total = parts.reduce((sum, [, seconds]) => sum + seconds, 0);
  bench.report(name, perTenThousand(total), UNIT, {
    tasks,
    ...(foreignCores !== undefined && { foreignCores: round(foreignCores, 2) }),
  });
}

/** Highest resident memory of every part in the interval. */
export function reportMemory(bench: Bench, name: string, { peakMib }: Reading): void {
  for (const [part, value] of Object.entries(peakMib))
    bench.report(`${name}_${part}`, round(value), 'MiB', {});
}
