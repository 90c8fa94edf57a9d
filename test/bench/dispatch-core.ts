import { DispatchCore } from '../../src/dispatch/core.ts';
import { coreRate, ingested, settings } from './core-rate.ts';

/**
 * The dispatcher's pure core alone, without log or network: events folded a second over whole lives, and the memory of
 * a waiting task. `npx tsx --expose-gc test/bench/dispatch-core.ts` prints one JSON line a figure.
 */
function heapAfterGc(): number {
  const { gc } = globalThis as { gc?: () => void };
  if (gc === undefined) throw new Error('run with --expose-gc');
  gc();
  gc();
  return process.memoryUsage().heapUsed;
}

const print = (figure: string, value: number, unit: string): void =>
  console.log(JSON.stringify({ figure, value: Math.round(value), unit }));

for (const waiting of [640, 64_000]) {
  const { eventsPerSecond, microsPerTask } = coreRate({ tasks: 100_000, waiting });
  print(`dispatch core, whole lives of 5 events, ${waiting} waiting`, eventsPerSecond, 'events/s');
  print(`dispatch core, CPU of a whole life, ${waiting} waiting`, microsPerTask * 1_000, 'ns');
}

const WAITING = 1_000_000;
const tenants = Array.from({ length: 1_000 }, (_, n) => `tenant-${n}`);
const fill = (payloadCacheBytes: number): DispatchCore => {
  const full = new DispatchCore({ ...settings, payloadCacheBytes });
  full.enter('following');
  for (let n = 1; n <= WAITING; n++) full.observe(ingested(n, tenants[n % tenants.length] ?? 'acme'));
  return full;
};
const kept: DispatchCore[] = [];
for (const [name, payloadCacheBytes] of [
  ['without payload', 0],
  ['with a cached payload of 200 bytes', 1024 ** 3],
] as const) {
  const before = heapAfterGc();
  kept.push(fill(payloadCacheBytes));
  print(`dispatch core, memory of a waiting task ${name}`, (heapAfterGc() - before) / WAITING, 'bytes');
}
