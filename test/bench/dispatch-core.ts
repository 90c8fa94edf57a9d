import { randomUUID } from 'node:crypto';
import { DispatchCore } from '../../src/dispatch/core.ts';
import type { Decision } from '../../src/dispatch/decisions.ts';
import { decodeEvent } from '../../src/domain/codec.ts';
import type { Recorded } from '../../src/domain/events.ts';

/**
 * The dispatcher's pure core alone, without log or network: events folded a second over whole lives, and the memory of
 * a waiting task. `npx tsx --expose-gc test/bench/dispatch-core.ts` prints one JSON line a figure.
 */
const settings = {
  window: { min: 64, max: 4_096, ms: 500 },
  inlinePayloadBytes: 8_192,
  payloadCacheBytes: 128 * 1024 * 1024,
};
const PAYLOAD = { clip: 'x'.repeat(180), n: 1 };

const envelope = (taskId: string, kind: string, tenant: string) =>
  ({
    v: 1,
    id: randomUUID(),
    taskId,
    kind,
    tenant,
    type: 'transcode',
    round: 1,
    priority: 2,
    at: 1_700_000_000_000,
  }) as const;
const worker = { kind: 'worker', id: 'w1' };
const intake = { kind: 'intake', id: 'i1' };
const facts = { submittedAt: 1, attemptsBefore: 0, lost: 0 };

/** Through JSON, as the reader makes them: the strings are the event's own. */
const recorded = (seq: number, event: object): Recorded => ({
  seq,
  storedAt: 1_700_000_000_000 + seq,
  event: decodeEvent(JSON.stringify(event)),
});

const ingested = (seq: number, tenant: string, taskId: string = randomUUID()): Recorded =>
  recorded(seq, {
    ...envelope(taskId, 'INGESTED', tenant),
    from: null,
    attempt: 0,
    actor: intake,
    data: { payload: PAYLOAD, fingerprint: 'f'.repeat(32) },
  });

function lives({ core, tasks, backlog }: { core: DispatchCore; tasks: number; backlog: number }): number {
  const ids = Array.from({ length: tasks }, () => randomUUID());
  const after = (seq: number, id: string, kind: string, from: string, attempt: number, data: object) =>
    recorded(seq, { ...envelope(id, kind, 'acme'), from, attempt, actor: worker, data });
  const batches: Recorded[][] = [];
  let seq = core.position;
  const step = 64;
  // As in steady state: while some are submitted, those `backlog` places before them run and end.
  for (let at = 0; at < tasks + backlog; at += step) {
    const batch: Recorded[] = [];
    for (const id of ids.slice(at, at + step)) batch.push(ingested(++seq, 'acme', id));
    for (const id of at < backlog ? [] : ids.slice(at - backlog, at - backlog + step)) {
      batch.push(after(++seq, id, 'QUEUED', 'INGESTED', 0, { facts, payload: PAYLOAD }));
      batch.push(after(++seq, id, 'CLAIMED', 'QUEUED', 1, {}));
      batch.push(after(++seq, id, 'PROCESSING', 'CLAIMED', 1, {}));
      batch.push(after(++seq, id, 'COMPLETED', 'PROCESSING', 1, { result: null }));
    }
    batches.push(batch);
  }
  const decisions: Decision[] = [];
  const startedAt = performance.now();
  for (const batch of batches) {
    for (const event of batch) core.observe(event);
    core.decide(decisions, 1_700_000_000_000 + seq);
    decisions.length = 0;
  }
  return (tasks * 5 * 1_000) / (performance.now() - startedAt);
}

function heapAfterGc(): number {
  const { gc } = globalThis as { gc?: () => void };
  if (gc === undefined) throw new Error('run with --expose-gc');
  gc();
  gc();
  return process.memoryUsage().heapUsed;
}

const print = (figure: string, value: number, unit: string): void =>
  console.log(JSON.stringify({ figure, value: Math.round(value), unit }));

const core = new DispatchCore(settings);
core.enter('leading');
lives({ core, tasks: 20_000, backlog: 640 });
print(
  'dispatch core, whole lives of 5 events, 640 waiting',
  lives({ core, tasks: 100_000, backlog: 640 }),
  'events/s',
);
print(
  'dispatch core, whole lives of 5 events, 64 000 waiting',
  lives({ core, tasks: 128_000, backlog: 64_000 }),
  'events/s',
);

const WAITING = 500_000;
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
