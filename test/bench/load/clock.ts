/** CLOCK_MONOTONIC in whole microseconds: one clock for every process on the machine. */
export const nowUs = (): number => Math.round(Number(process.hrtime.bigint()) / 1000);

export interface Quantiles {
  readonly n: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
}

/** Nearest-rank quantiles of microseconds, in milliseconds with two digits. */
export function quantilesMs(us: readonly number[]): Quantiles {
  const sorted = Float64Array.from(us).sort();
  const at = (share: number): number => {
    const index = Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1));
    return Math.round((sorted[index] ?? 0) / 10) / 100;
  };
  return { n: sorted.length, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) };
}
