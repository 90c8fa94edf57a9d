import { randomUUID } from 'node:crypto';
import { DispatchCore } from '../../src/dispatch/core.ts';
import type { CoreSettings, Decision } from '../../src/dispatch/decisions.ts';
import { decodeEvent } from '../../src/domain/codec.ts';
import type { Recorded } from '../../src/domain/events.ts';

export const settings: CoreSettings = {
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

/** INGESTED of a new task. */
export const ingested = (seq: number, tenant: string, taskId: string = randomUUID()): Recorded =>
  recorded(seq, {
    ...envelope(taskId, 'INGESTED', tenant),
    from: null,
    attempt: 0,
    actor: intake,
    data: { payload: PAYLOAD, fingerprint: 'f'.repeat(32) },
  });

export interface CoreRate {
  readonly eventsPerSecond: number;
  readonly decisionsPerSecond: number;
  /** CPU of this process, all five events of a task and the decision about it. */
  readonly microsPerTask: number;
}

/** The deciding core through whole lives of five events: while some are submitted, those `waiting` places before them run and end. */
export function coreRate({ tasks, waiting }: { readonly tasks: number; readonly waiting: number }): CoreRate {
  const core = new DispatchCore(settings);
  core.enter('leading');
  // Warm, and with a heap that has been grown.
  pass(core, { tasks: 20_000, waiting: 640 });
  const batches = batchesOf(core.position, { tasks, waiting });
  const cpu = process.cpuUsage();
  const startedAt = performance.now();
  const decided = fold(core, batches);
  const seconds = (performance.now() - startedAt) / 1_000;
  const { user, system } = process.cpuUsage(cpu);
  return {
    eventsPerSecond: (tasks * 5) / seconds,
    decisionsPerSecond: decided / seconds,
    microsPerTask: (user + system) / tasks,
  };
}

const pass = (core: DispatchCore, of: { tasks: number; waiting: number }): number =>
  fold(core, batchesOf(core.position, of));

function batchesOf(position: number, { tasks, waiting }: { tasks: number; waiting: number }): Recorded[][] {
  const ids = Array.from({ length: tasks }, () => randomUUID());
  const after = (seq: number, id: string, kind: string, from: string, attempt: number, data: object) =>
    recorded(seq, { ...envelope(id, kind, 'acme'), from, attempt, actor: worker, data });
  const batches: Recorded[][] = [];
  let seq = position;
  const step = 64;
  for (let at = 0; at < tasks + waiting; at += step) {
    const batch: Recorded[] = [];
    for (const id of ids.slice(at, at + step)) batch.push(ingested(++seq, 'acme', id));
    for (const id of at < waiting ? [] : ids.slice(at - waiting, at - waiting + step)) {
      batch.push(after(++seq, id, 'QUEUED', 'INGESTED', 0, { facts, payload: PAYLOAD }));
      batch.push(after(++seq, id, 'CLAIMED', 'QUEUED', 1, {}));
      batch.push(after(++seq, id, 'PROCESSING', 'CLAIMED', 1, {}));
      batch.push(after(++seq, id, 'COMPLETED', 'PROCESSING', 1, { result: null }));
    }
    batches.push(batch);
  }
  return batches;
}

/** Answers how many decisions were made. */
function fold(core: DispatchCore, batches: readonly (readonly Recorded[])[]): number {
  const decisions: Decision[] = [];
  let decided = 0;
  for (const batch of batches) {
    for (const event of batch) core.observe(event);
    core.decide(decisions, 1_700_000_000_000 + core.position);
    decided += decisions.length;
    decisions.length = 0;
  }
  return decided;
}
