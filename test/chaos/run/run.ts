import { createWriteStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Evidence } from '../checker/evidence.ts';
import { CLIENTS, startLoad } from '../load/load.ts';
import { RELEASES } from '../load/releases.ts';
import { firedSlots } from '../load/schedules.ts';
import { INTAKE_RATES, LIMITS, RATES } from '../load/wishes.ts';
import { healAll } from '../nemesis/nemesis.ts';
import type { NetworkWish } from '../network/choose.ts';
import type { StandSize } from '../stand/parts.ts';
import { openStand, type Stand } from '../stand/stand.ts';
import { endedBulks, verifyAll } from './answers.ts';
import { collectCopies, storedIn } from './collect.ts';
import { hurtUnderLoad } from './hurt.ts';
import { type PartLogs, readPartLogs } from './part-logs.ts';
import { untilQuiet } from './quiet.ts';
import { type Report, type Run, reportOf } from './report.ts';
import { showBothStarts } from './starts.ts';

export interface RunOptions {
  readonly seed: number;
  /** How long the load and the nemesis run. */
  readonly seconds: number;
  readonly tasksPerSecond: number;
  readonly size: StandSize;
  readonly network: NetworkWish;
  /** Holds data, logs and the history; created when missing. */
  readonly dir: string;
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal;
}

const CATCH_UP_MS = 60_000;

/** One run: a stand, a load, a nemesis, and at the end the checker's verdict. Everything is stopped when it resolves. */
export async function runChaos(options: RunOptions): Promise<Report> {
  const { dir, log, seed, seconds } = options;
  await mkdir(dir, { recursive: true });
  const history = createWriteStream(join(dir, 'history.jsonl'));
  const record = (kind: string, entry: object): void =>
    void history.write(`${JSON.stringify({ record: kind, ...entry })}\n`);
  log('starting the servers and every part');
  const stand = await openStand({
    dir,
    size: options.size,
    network: options.network,
    log,
    onDeath: (death) => {
      record('death', death);
      if (death.by === 'itself') log(`${death.name} ended by itself: ${death.how.split('\n').at(-1)}`);
    },
  });
  try {
    const run = await hurtAndObserve(stand, options, record);
    const report = reportOf({ ...run, seed, seconds });
    await writeFile(join(dir, 'report.json'), JSON.stringify(report, undefined, 2));
    return report;
  } finally {
    await healAll(stand);
    await stand.stop();
    history.end();
  }
}

async function hurtAndObserve(
  stand: Stand,
  options: RunOptions,
  record: (kind: string, entry: object) => void,
): Promise<Omit<Run, 'seed' | 'seconds'>> {
  const { dir, size, log, signal } = options;
  const { nc, names, operatorKey } = stand;
  const partsDir = join(dir, 'parts');
  const partLogs = (): Promise<PartLogs> => readPartLogs(partsDir, [...stand.targets.parts, CLIENTS]);

  const load = await startLoad(stand, {
    ...options,
    partsDir,
    record: (asked) => record('operation', asked),
  });
  const { faults, from, to } = await hurtUnderLoad(stand, load, {
    ...options,
    record: (fault) => record('fault', fault),
  });
  log('healed; a dispatcher begins from a snapshot, then all from the log');
  const notShown = await showBothStarts(stand, async () => (await partLogs()).starts);
  const schedules = await load.endAsking(signal?.aborted === true ? to : undefined);

  log('waiting until every task has ended');
  const ended = await endedBulks(load.call, operatorKey);
  const { subscriber, stream, clients } = load;
  const { operations, joined } = clients;
  const submissions = (): Promise<number> => storedIn(nc, names.streams.submissions);
  const restless = await untilQuiet({ subscriber, stream, operations, joined, submissions });
  await load.endListening();

  log('reading the log and everything that was made from it');
  const databaseUrl = stand.database.url;
  const copies = await collectCopies({ nc, names, databaseUrl, catchUpMs: CATCH_UP_MS });
  const { verified, complaints: unverified } = await verifyAll(load.call, operatorKey);
  const { alone, starts, defects } = await partLogs();
  return {
    faults,
    starts,
    deaths: stand.deaths,
    network: stand.network,
    load: { from, to },
    complaints: [
      ...notShown,
      ...ended.complaints,
      ...restless,
      ...copies.complaints,
      ...unverified,
      ...complaintsOf(defects),
    ],
    evidence: {
      ...load.testimony(),
      ...promisedBy(size),
      log: copies.log,
      history: copies.history,
      audit: copies.audit,
      alone,
      schedules,
      slots: firedSlots(copies.log),
      bulks: ended.bulks,
      verified,
    },
  };
}

const complaintsOf = (defects: readonly string[]): string[] =>
  defects.length === 0 ? [] : [`${defects.length} failures that nobody expects, first ${defects[0]}`];

/** What the stand was told to keep to. */
const promisedBy = (size: StandSize): Pick<Evidence, 'limits' | 'rates' | 'intakeRates' | 'releases'> => ({
  limits: LIMITS,
  rates: RATES,
  // The clients' submitters are one process.
  intakeRates: INTAKE_RATES.map((rate) => ({ ...rate, processes: size.apis + 1 })),
  releases: RELEASES,
});
