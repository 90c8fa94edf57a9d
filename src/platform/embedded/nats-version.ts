/** Schedules with cron, per-key TTL and consumer reset came with this one. */
export const REQUIRED_NATS_VERSION = '2.14.0';
/** The one the tests run against, and the one that is downloaded. */
export const TESTED_NATS_VERSION = '2.15.1';

/** The version in the output of `nats-server --version`, such as `nats-server: v2.15.1`. A pre-release keeps its suffix. */
export function parseNatsVersion(output: string): string | undefined {
  return /\bv?(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)/.exec(output)?.[1];
}

/** Negative, zero or positive as `a` is older than, the same as or newer than `b`; a pre-release counts as its release. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [numbersOf(a), numbersOf(b)];
  for (const index of [0, 1, 2]) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

export const isNewEnough = (version: string): boolean => compareVersions(version, REQUIRED_NATS_VERSION) >= 0;

const numbersOf = (version: string): number[] => (version.split('-')[0] ?? '').split('.').map(Number);
