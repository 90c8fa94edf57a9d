import { mkdir } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { buildLoad } from './built.ts';
import { folderText } from './cpu-profile.ts';
import { describeMachine, type Figure, figureTable } from './figure.ts';
import { dispatchDecisions } from './figures/dispatch-decisions.ts';
import { drain } from './figures/drain.ts';
import { durability } from './figures/durability.ts';
import { failover } from './figures/failover.ts';
import { latency } from './figures/latency.ts';
import { noisyNeighbour } from './figures/noisy-neighbour.ts';
import { projection } from './figures/projection.ts';
import { rebuild } from './figures/rebuild.ts';
import { submitMeasurements } from './figures/submit.ts';
import { sustained } from './figures/sustained.ts';
import { timerBurst, timerCalm } from './figures/timers.ts';
import { type Bench, type BenchSettings, type Measurement, openLoads } from './measurement.ts';
import { parseLayout, prepareStands, type Stands } from './stand.ts';

/** `npm run bench`: the built product on servers of its own; one JSON line a figure on stdout, all else on stderr. */
const measurements: readonly Measurement[] = [
  ...submitMeasurements,
  drain,
  sustained,
  latency,
  timerBurst,
  timerCalm,
  noisyNeighbour,
  projection,
  rebuild,
  dispatchDecisions,
  failover,
  ...durability,
];

const { values: args } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    seconds: { type: 'string', default: '20' },
    events: { type: 'string', default: '200000' },
    layout: { type: 'string', default: 'api+dispatcher,projector' },
    workers: { type: 'string', default: '1' },
    concurrency: { type: 'string', default: '100' },
    via: { type: 'string', default: 'log' },
    replicas: { type: 'string', default: '1' },
    sync: { type: 'string' },
    waiting: { type: 'string', default: '0,100000' },
    set: { type: 'string', multiple: true, default: [] },
    profile: { type: 'string', multiple: true, default: [] },
    help: { type: 'boolean', default: false },
  },
});

const HELP = `npm run bench -- [options]

  --only NAME[,NAME]    these measurements only (may be repeated)
  --seconds N           length of a timed window (${args.seconds})
  --events N            events of the log that is rebuilt (${args.events})
  --layout LIST         processes of the product, roles joined by "+": all | api,dispatcher,projector | ... (${args.layout})
  --workers N           worker processes (${args.workers}), of --concurrency N (${args.concurrency}) each
  --via log|http        how sustained and latency submit (${args.via})
  --replicas 1|3|5      nats-servers on this machine, and copies of every stream (${args.replicas})
  --sync INTERVAL       sync_interval of JetStream: always, or a duration; the server's default is 2m
  --waiting N[,N]       tasks that wait during a failover (${args.waiting}); 1000000 takes a minute more
  --set NAME=VALUE      a setting of the product, as its environment variable
  --profile PART        CPU profile of a part, summarised on stderr: a role of the layout, submitter or worker (may be repeated)

Measurements:
${measurements.map(({ name, about }) => `  ${name.padEnd(20)}  ${about}`).join('\n')}`;

const log = (line: string): void => console.error(`bench: ${line}`);

function readSettings(): BenchSettings {
  const count = (name: 'seconds' | 'events' | 'workers' | 'concurrency' | 'replicas'): number => {
    const value = Number(args[name]);
    if (!(value > 0)) throw new Error(`--${name} must be a positive number`);
    return value;
  };
  if (args.waiting.split(',').some((n) => !(Number(n) >= 0)))
    throw new Error('--waiting is a list of numbers');
  if (args.via !== 'log' && args.via !== 'http') throw new Error('--via is log or http');
  return {
    seconds: count('seconds'),
    events: count('events'),
    workers: count('workers'),
    concurrency: count('concurrency'),
    via: args.via,
    layout: args.layout,
    replicas: count('replicas'),
    sync: args.sync,
    waiting: args.waiting.split(',').map(Number),
  };
}

/** `submit` stands for all names that begin with `submit_`. */
function selected(): readonly Measurement[] {
  const wanted = args.only.flatMap((list) => list.split(','));
  const isWanted = (name: string, word: string): boolean => name === word || name.startsWith(`${word}_`);
  const unknown = wanted.filter((word) => !measurements.some(({ name }) => isWanted(name, word)));
  if (unknown.length > 0) throw new Error(`no measurement is called ${unknown.join(', ')}; see --help`);
  if (wanted.length === 0) return measurements.filter(({ onRequest }) => onRequest === undefined);
  return measurements.filter(({ name }) => wanted.some((word) => isWanted(name, word)));
}

const profileFolder = fileURLToPath(new URL(`../../.taskledger/profiles/${Date.now()}`, import.meta.url));
const profileArgs = (part: string): readonly string[] => [
  '--cpu-prof',
  '--cpu-prof-interval=500',
  `--cpu-prof-dir=${profileFolder}`,
  `--cpu-prof-name=${part}-${++profiles}.cpuprofile`,
];
let profiles = 0;

async function measure(
  stands: Stands,
  measurement: Measurement,
  settings: BenchSettings,
  take: (figure: Figure) => void,
): Promise<void> {
  const nodeArgs = (part: string): readonly string[] =>
    part.split('+').some((role) => args.profile.includes(role)) ? profileArgs(part) : [];
  const stand = await stands.open({
    layout: measurement.layout ?? parseLayout(settings.layout),
    ...(measurement.tenants === undefined ? {} : { tenants: measurement.tenants }),
    durability: measurement.durability ?? settings,
    nodeArgs,
    settings: Object.fromEntries(
      args.set.map((pair) => [pair.split('=')[0] ?? '', pair.slice(pair.indexOf('=') + 1)]),
    ),
  });
  const loads = openLoads(stand, settings, nodeArgs);
  const machine = describeMachine(stands.natsVersion);
  const { layout, workers, concurrency } = settings;
  const { replicas, sync } = measurement.durability ?? settings;
  const bench: Bench = {
    settings,
    stand,
    log: (line) => log(`${measurement.name}: ${line}`),
    producer: (via = 'log', tenant) => loads.producer(via, tenant),
    startWorkers: (wanted = {}) => loads.startWorkers(wanted),
    parts: () => ({ ...stand.parts, ...loads.parts() }),
    report: (name, value, unit, params = {}) =>
      take({
        name,
        value,
        unit,
        params: {
          layout,
          workers,
          concurrency,
          replicas,
          ...(sync === undefined ? {} : { sync }),
          ...params,
        },
        machine,
        at: new Date().toISOString(),
      }),
  };
  try {
    await Promise.race([measurement.run(bench), interruption]);
  } finally {
    await loads.end();
    await stand.stop();
  }
}

let interrupted = false;
/** Rejects at the first Ctrl+C or SIGTERM. What is running is given up, and everything that was started is stopped. */
const interruption = new Promise<never>((_, reject) => {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => {
      interrupted = true;
      reject(new Error('interrupted'));
    });
  }
});
interruption.catch(() => undefined);

async function main(): Promise<void> {
  if (args.help) {
    console.log(HELP);
    return;
  }
  const settings = readSettings();
  const chosen = selected();
  await buildLoad();
  if (args.profile.length > 0) await mkdir(profileFolder, { recursive: true });
  const stands = await prepareStands(log);
  const figures: Figure[] = [];
  try {
    for (const measurement of chosen) {
      if (interrupted) break;
      log(`${measurement.name}: ${measurement.about}`);
      try {
        await measure(stands, measurement, settings, (figure) => {
          figures.push(figure);
          console.log(JSON.stringify(figure));
        });
      } catch (error) {
        process.exitCode = 1;
        log(
          `${measurement.name} failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`,
        );
      }
    }
  } finally {
    await stands.close();
  }
  if (args.profile.length > 0) console.error(await folderText(profileFolder));
  console.error(`\n${figureTable(figures)}`);
}

await main();
// A measurement that was given up may still be waiting for something.
if (interrupted) process.exit(130);
