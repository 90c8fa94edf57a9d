import { createWriteStream } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { connectNats } from '../../../src/platform/nats.ts';
import type { Operation } from '../checker/evidence.ts';
import { lifeKey } from '../checker/lives.ts';
import { startClients } from '../load/clients.ts';
import { openDoors } from '../load/doors.ts';
import { askForFeatures, firedSlots } from '../load/features.ts';
import { startSubscriber } from '../load/subscriber.ts';
import { TENANTS } from '../load/wishes.ts';
import { healAll, runFaults } from '../nemesis/nemesis.ts';
import { planFaults } from '../nemesis/plan.ts';
import { openStand, type Stand, type StandSize } from '../stand/stand.ts';
import { collectCopies } from './collect.ts';
import { type Report, reportOf } from './report.ts';

export interface RunOptions {
  readonly seed: number;
  /** How long the load and the nemesis run. */
  readonly seconds: number;
  readonly tasksPerSecond: number;
  readonly size: StandSize;
  /** Holds data, logs and the history; created when missing. */
  readonly dir: string;
  readonly log: (line: string) => void;
  readonly signal?: AbortSignal;
}

const TERMINAL = new Set(['COMPLETED', 'DEAD_LETTER', 'CANCELLED', 'REJECTED']);
/** After the last fault everything must have ended by then: leases, backoffs and delays take a part of it. */
const QUIET_WITHIN_MS = 180_000;
const CATCH_UP_MS = 60_000;
const POLL_MS = 200;
/** Attempts of one tenant at once: few enough to be reached, enough for its share of the load. */
const LIMIT = 4;

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
  { seed, seconds, tasksPerSecond, log, signal }: RunOptions,
  record: (kind: string, entry: object) => void,
) {
  const nc = await connectNats({ ...stand.config, natsUrl: stand.clientNatsUrl }, 'chaos clients');
  const [scheduled, , limited] = TENANTS;
  const asked = await askForFeatures({
    api: stand.apis[0] ?? '',
    operatorKey: stand.operatorKey,
    tenant: scheduled,
    tenantKey: stand.keys.get(scheduled) ?? '',
    limited: { tenant: limited, max: LIMIT },
    seconds,
  });
  const doors = await openDoors({ apis: stand.apis, keys: stand.keys, nc, names: stand.names });
  const subscriber = await startSubscriber(nc, stand.names);
  const clients = startClients({
    seed,
    tasksPerSecond,
    doors,
    record: (operation: Operation) => record('operation', operation),
  });
  const from = Date.now();
  const plan = planFaults({ seed, lengthMs: seconds * 1_000, targets: stand.targets });
  log(`${plan.length} faults in ${seconds} s, ${tasksPerSecond} tasks/s`);
  const length = AbortSignal.timeout(seconds * 1_000);
  const over = signal === undefined ? length : AbortSignal.any([length, signal]);
  const lengthOver = delay(seconds * 1_000, undefined, { signal: over }).catch(() => undefined);
  const faults = await runFaults(plan, stand, {
    signal: signal ?? new AbortController().signal,
    onFault: (fault) => {
      record('fault', fault);
      log(
        `${fault.kind} ${fault.target} for ${fault.endedAt - fault.startedAt} ms${fault.failed ? `: ${fault.failed}` : ''}`,
      );
    },
  });
  await lengthOver;
  const to = Date.now();
  await clients.stop();
  log('healed; waiting until every task has ended');
  const complaints = await untilQuiet(subscriber, clients.operations);
  await subscriber.stop();
  await doors.close();
  await nc.close();
  const {
    log: events,
    history,
    audit,
    complaints: more,
  } = await collectCopies({
    nc: stand.nc,
    names: stand.names,
    databaseUrl: stand.database.url,
    catchUpMs: CATCH_UP_MS,
  });
  return {
    faults,
    deaths: stand.deaths,
    load: { from, to },
    live: subscriber.live(),
    complaints: [...complaints, ...more],
    evidence: {
      operations: clients.operations,
      log: events,
      history,
      audit,
      feeds: { reader: subscriber.heard },
      ...asked,
      slots: firedSlots(events),
    },
  };
}

/** Resolves when every acknowledged task is known to the subscriber and every known one has ended, or complains. */
async function untilQuiet(
  { statuses }: { readonly statuses: ReadonlyMap<string, string> },
  operations: readonly Operation[],
): Promise<string[]> {
  const expected = operations
    .filter(({ op, outcome }) => op === 'submit' && outcome === 'acknowledged')
    .map(({ tenant, taskId }) => lifeKey(tenant, taskId));
  let open: string[] = [];
  for (const deadline = Date.now() + QUIET_WITHIN_MS; Date.now() < deadline; await delay(POLL_MS)) {
    open = [
      ...expected.filter((key) => !statuses.has(key)),
      ...[...statuses]
        .filter(([, status]) => !TERMINAL.has(status))
        .map(([key, status]) => `${key} ${status}`),
    ];
    if (open.length === 0) return [];
  }
  return [
    `${open.length} tasks have not ended ${QUIET_WITHIN_MS} ms after the last fault, such as ${open[0]}`,
  ];
}
