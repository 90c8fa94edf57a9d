import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { reportText } from './run/report.ts';
import { runChaos } from './run/run.ts';

const SECONDS = 25;
/** Starting, load, healing, every lease and backoff, collecting. */
const TIMEOUT_MS = 420_000;

/** Side by side: a run waits more than it works. */
it.concurrent.each([
  { network: 'auto', seed: 4 },
  { network: 'proxies', seed: 5 },
] as const)(
  'keeps every promise while a seeded nemesis kills, pauses, cuts and slows whatever it finds: network $network',
  async ({ network, seed }) => {
    const dir = await mkdtemp(join(tmpdir(), 'taskledger-chaos-'));
    const report = await runChaos({
      seed,
      seconds: SECONDS,
      tasksPerSecond: 5,
      size: { apis: 1, dispatchers: 2, projectors: 1, workers: 2 },
      network,
      dir,
      log: (line) => console.log(`[chaos, ${network}] ${line}`),
    });
    console.log(reportText(report));
    expect(report.violations, `history and logs are kept in ${dir}`).toEqual([]);
    expect(report.complaints).toEqual([]);
    // A run in which nothing happened would prove nothing.
    expect(report.acknowledged).toBeGreaterThan(SECONDS);
    expect(Object.keys(report.faults).length).toBeGreaterThan(3);
    expect(report.starts.snapshot).toBeGreaterThan(0);
    expect(report.starts.log).toBeGreaterThan(0);
    if (!process.env['TEST_KEEP_DATA']) await rm(dir, { recursive: true, force: true });
  },
  TIMEOUT_MS,
);
