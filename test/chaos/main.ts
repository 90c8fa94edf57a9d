import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { isNetworkWish, NETWORK_WISHES } from './network/choose.ts';
import { reportText } from './run/report.ts';
import { runChaos } from './run/run.ts';

/** `npm run chaos`: faults on a whole installation, and a verdict. Progress on stderr, the report on stdout. */
const { values: args } = parseArgs({
  options: {
    minutes: { type: 'string', default: '2' },
    seed: { type: 'string', default: String(Math.floor(Date.now() / 1_000) % 100_000) },
    rate: { type: 'string', default: '10' },
    workers: { type: 'string', default: '6' },
    network: { type: 'string', default: 'auto' },
    json: { type: 'boolean', default: false },
    keep: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const HELP = `npm run chaos -- [options]

  --minutes N   how long load and faults run (${args.minutes}); healing and checking come on top
  --seed S      faults and load are drawn from it; a random one by default
  --rate N      tasks a second (${args.rate})
  --workers N   worker processes (${args.workers})
  --network K   namespaces (as root on Linux), proxies, or auto (${args.network}): namespaces where they can be had
  --json        the report as JSON
  --keep        keep the data of the servers, not only logs and history

Logs, history.jsonl and report.json stay in .taskledger/chaos/. Exit code 1 when a promise was broken, or something could not be checked.`;

const positive = (name: 'minutes' | 'rate' | 'workers' | 'seed'): number => {
  const value = Number(args[name]);
  if (!(value > 0)) throw new Error(`--${name} must be a positive number`);
  return value;
};

async function main(): Promise<void> {
  if (args.help) return console.log(HELP);
  const seed = positive('seed');
  const { network } = args;
  if (!isNetworkWish(network)) throw new Error(`--network must be one of ${NETWORK_WISHES.join(', ')}`);
  const startedAt = new Date().toISOString().replaceAll(/[:.]/g, '-');
  const dir = fileURLToPath(new URL(`../../.taskledger/chaos/${startedAt}-seed-${seed}`, import.meta.url));
  const interrupted = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.on(name, () => {
      if (interrupted.signal.aborted) process.exit(130);
      console.error('chaos: interrupted; healing, then the verdict (once more ends at once)');
      interrupted.abort();
    });
  const began = Date.now();
  const report = await runChaos({
    seed,
    seconds: Math.round(positive('minutes') * 60),
    tasksPerSecond: positive('rate'),
    size: { apis: 2, dispatchers: 2, projectors: 2, workers: positive('workers') },
    network,
    dir,
    log: (line) => console.error(`chaos ${((Date.now() - began) / 1_000).toFixed(1).padStart(6)} s: ${line}`),
    signal: interrupted.signal,
  });
  if (!args.keep) {
    for (const data of ['nats', 'postgres']) await rm(join(dir, data), { recursive: true, force: true });
  }
  console.log(
    args.json
      ? JSON.stringify(report, undefined, 2)
      : `${reportText(report)}\n\nKept in ${dir}; report.json has all of it`,
  );
  process.exitCode = report.violations.length + report.complaints.length === 0 ? 0 : 1;
}

await main();
// Nothing is left to do; a handle of a loader must not keep the process from ending.
process.exit();
