import { createWriteStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import type { Logger } from '../../../src/observe/log.ts';
import { connectNats } from '../../../src/platform/nats.ts';
import type { JoinedSubmission, Operation } from '../checker/evidence.ts';
import { startClients } from '../load/clients.ts';
import { openDoors } from '../load/doors.ts';
import { followEvents } from '../load/event-stream.ts';
import { callOver } from '../load/http.ts';
import { startOperator } from '../load/operator.ts';
import { RELEASES } from '../load/releases.ts';
import { endSchedules, firedSlots, putSchedules } from '../load/schedules.ts';
import { startSubscriber } from '../load/subscriber.ts';
import { INTAKE_RATES, LIMITS, RATES, TENANTS } from '../load/wishes.ts';
import { healAll, runFaults } from '../nemesis/nemesis.ts';
import { planFaults } from '../nemesis/plan.ts';
import type { NetworkWish } from '../network/choose.ts';
import { openStand, type Stand, type StandSize } from '../stand/stand.ts';
import { endedBulks, verifyAll } from './answers.ts';
import { collectCopies, storedIn } from './collect.ts';
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
const PROGRESS_EVERY_MS = 30_000;
const CLIENTS = 'clients';
/** Part of the run after which all dispatchers are restarted without a snapshot, and the workers get their second release. */
const ROLL_OUT_AT = 0.4;

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
  { dir, seed, seconds, size, tasksPerSecond, log, signal }: RunOptions,
  record: (kind: string, entry: object) => void,
): Promise<Omit<Run, 'seed' | 'seconds'>> {
  const { apis, keys, operatorKey, names } = stand;
  const [scheduled] = TENANTS;
  const nc = await connectNats({ ...stand.config, natsUrl: stand.clientNatsUrl }, 'chaos clients');
  const call = callOver(apis);
  const key = keys.get(scheduled) ?? '';
  const planned = await putSchedules({ call, tenant: scheduled, key, seconds });
  const doors = await openDoors({ call, keys, nc, names, logger: await clientsLogger(dir) });
  const subscriber = await startSubscriber(nc, names);
  const stream = followEvents(apis, operatorKey);
  const recordOperation = (operation: Operation | JoinedSubmission): void => record('operation', operation);
  let release = 1;
  const load = { seed, tasksPerSecond, doors, release: () => release };
  const clients = startClients({ ...load, record: recordOperation });
  const { statuses } = subscriber;
  const operator = startOperator({ seed, call, keys, operatorKey, statuses, record: recordOperation });

  const from = Date.now();
  const plan = planFaults({ seed, lengthMs: seconds * 1_000, targets: stand.targets });
  log(`${plan.length} faults in ${seconds} s, ${tasksPerSecond} tasks/s`);
  let hurt = 0;
  const progress = setInterval(() => {
    const ended = [...statuses.values()].filter((status) => status === 'COMPLETED').length;
    log(`${statuses.size} tasks, ${ended} completed, ${hurt} of ${plan.length} faults`);
  }, PROGRESS_EVERY_MS);
  const length = AbortSignal.timeout(seconds * 1_000);
  const over = signal === undefined ? length : AbortSignal.any([length, signal]);
  const after = (ms: number): Promise<unknown> =>
    delay(ms, undefined, { signal: over }).catch(() => undefined);
  const rolledOut = after(ROLL_OUT_AT * seconds * 1_000).then(async () => {
    release = 2;
    log('restarting the dispatchers without a snapshot, and rolling the second release of the workers out');
    await stand.redeploy('afresh');
    await stand.rollOut(release, over);
  });
  const lengthOver = after(seconds * 1_000);
  const faults = await runFaults(plan, stand, {
    signal: signal ?? new AbortController().signal,
    onFault: (fault) => {
      hurt += 1;
      record('fault', fault);
      log(
        `${fault.kind} ${fault.target} for ${fault.endedAt - fault.startedAt} ms${fault.failed ? `: ${fault.failed}` : ''}`,
      );
    },
  });
  await Promise.all([lengthOver, rolledOut]);
  const to = Date.now();
  clearInterval(progress);
  // Whoever was to be given a release and was down meanwhile has it now.
  await stand.rollOut(release, new AbortController().signal);
  log('healed; a dispatcher begins from a snapshot, then all from the log');
  const partLogs = (): Promise<PartLogs> =>
    readPartLogs(join(dir, 'parts'), [...stand.targets.parts, CLIENTS]);
  const notShown = await showBothStarts(stand, async () => (await partLogs()).starts);
  await Promise.all([clients.stop(), operator.stop()]);
  const schedules = signal?.aborted === true ? await endSchedules({ call, key }, planned, to) : planned;
  log('waiting until every task has ended');
  const bulks = await endedBulks(call, operatorKey);
  const { operations, joined } = clients;
  const submissions = (): Promise<number> => storedIn(stand.nc, names.streams.submissions);
  const complaints = await untilQuiet({ subscriber, stream, operations, joined, submissions });
  await Promise.all([subscriber.stop(), stream.stop()]);
  await doors.close();
  await nc.close();
  log('reading the log and everything that was made from it');
  const copies = await collectCopies({
    nc: stand.nc,
    names,
    databaseUrl: stand.database.url,
    catchUpMs: CATCH_UP_MS,
  });
  const { verified, complaints: more } = await verifyAll(call, operatorKey);
  const { alone, starts, defects } = await partLogs();
  return {
    faults,
    starts,
    deaths: stand.deaths,
    network: stand.network,
    load: { from, to },
    complaints: [
      ...notShown,
      ...complaints,
      ...bulks.complaints,
      ...copies.complaints,
      ...more,
      ...(defects.length === 0
        ? []
        : [`${defects.length} failures that nobody expects, first ${defects[0]}`]),
    ],
    evidence: {
      operations: [...operations, ...operator.commands],
      joined,
      log: copies.log,
      history: copies.history,
      audit: copies.audit,
      feeds: { reader: subscriber.heard, http: stream.heard },
      live: subscriber.live,
      limits: LIMITS,
      rates: RATES,
      // The clients' submitters are one process.
      intakeRates: INTAKE_RATES.map((rate) => ({ ...rate, processes: size.apis + 1 })),
      alone,
      schedules,
      slots: firedSlots(copies.log),
      pauses: operator.pauses,
      bulksAccepted: operator.bulks,
      bulks: bulks.bulks,
      releases: RELEASES,
      verified,
    },
  };
}

/** Where the other parts' logs are: what the trusted submitters have to say. */
async function clientsLogger(dir: string): Promise<Logger> {
  const own = join(dir, 'parts', CLIENTS);
  await mkdir(own, { recursive: true });
  const settings = { base: null, timestamp: pino.stdTimeFunctions.isoTime };
  const logger: Logger = pino(settings, pino.destination({ dest: join(own, 'log'), sync: true }));
  return logger;
}
