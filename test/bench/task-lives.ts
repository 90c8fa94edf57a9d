import { randomUUID } from 'node:crypto';
import type { Command } from '../../src/domain/commands.ts';
import { decide } from '../../src/domain/decide.ts';
import type { Actor, TaskEvent } from '../../src/domain/events.ts';
import type { Json } from '../../src/domain/json.ts';
import { evolve, type TaskState } from '../../src/domain/task.ts';
import { newTaskId } from '../../src/intake/identity.ts';

export interface LivesOptions {
  readonly tasks: number;
  /** Tasks under way at the same time: how far the events of one task lie apart. */
  readonly inFlight?: number;
  readonly tenants?: number;
  readonly payload?: Json;
}

const WORKER: Actor = { kind: 'worker', id: 'worker-1-7f3a9c' };
const DISPATCHER: Actor = { kind: 'dispatcher', id: 'dispatcher-1' };
const SUBMITTER: Actor = { kind: 'key', id: 'bench' };
const TYPES = ['transcode', 'thumbnail', 'metadata'];
const PAYLOAD = {
  source: 's3://clips/2026/11/29/000123.mp4',
  profile: '1080p',
  codec: 'h264',
  bitrate: 4_500,
  note: 'x'.repeat(80),
};
const RESULT = { url: 's3://results/000123.mp4', frames: 1_234 };

interface Life {
  readonly number: number;
  readonly id: string;
  state: TaskState | undefined;
}

/** The events of many tasks that complete at the first attempt (five events each), interleaved as in a running system. */
export function* taskLives({
  tasks,
  inFlight = 60,
  tenants = 10,
  payload = PAYLOAD,
}: LivesOptions): Generator<TaskEvent> {
  const live: Life[] = [];
  let begun = 0;
  let seq = 0;
  while (begun < tasks || live.length > 0) {
    while (live.length < inFlight && begun < tasks) {
      live.push({ number: begun, id: newTaskId(Date.now()), state: undefined });
      begun += 1;
    }
    const index = Math.floor(Math.random() * live.length);
    const life = live[index];
    if (life === undefined) return;
    const decided = decide(life.state, nextCommand(life, `tenant-${life.number % tenants}`, payload));
    if (!decided.ok) throw decided.error;
    seq += 1;
    life.state = evolve(life.state, { seq, storedAt: Date.now(), event: decided.value });
    if (life.state.status === 'COMPLETED') live.splice(index, 1);
    yield decided.value;
  }
}

function nextCommand({ number, id, state }: Life, tenant: string, payload: Json): Command {
  const meta = { eventId: randomUUID(), at: Date.now() };
  const type = TYPES[number % TYPES.length] ?? 'transcode';
  switch (state?.status) {
    case undefined:
      return {
        ...meta,
        kind: 'ingest',
        actor: SUBMITTER,
        taskId: id,
        tenant,
        type,
        payload,
        priority: 1 + (number % 4),
        fingerprint: id.replaceAll('-', ''),
      };
    case 'INGESTED':
      return { ...meta, kind: 'queue', actor: DISPATCHER, inlinePayload: true };
    case 'QUEUED':
      return { ...meta, kind: 'claim', actor: WORKER };
    case 'CLAIMED':
      return { ...meta, kind: 'start', actor: WORKER, attempt: 1 };
    default:
      return { ...meta, kind: 'complete', actor: WORKER, attempt: 1, result: RESULT, runMs: 12 };
  }
}
