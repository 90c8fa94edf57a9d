import { randomUUID } from 'node:crypto';
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { encodeEvent } from '../../src/domain/codec.ts';
import { decide } from '../../src/domain/decide.ts';
import type { TaskEvent } from '../../src/domain/events.ts';
import type { Names } from '../../src/log/subjects.ts';

const FLUSH_EVERY = 1_000;
const TENANTS = 100;

/** INGESTED of a new task. */
export function ingested(type: string, tenant: string): TaskEvent {
  const decided = decide(undefined, {
    kind: 'ingest',
    eventId: randomUUID(),
    at: Date.now(),
    actor: { kind: 'intake', id: 'bench' },
    taskId: randomUUID(),
    tenant,
    type,
    payload: { clip: 'x'.repeat(100) },
    priority: 2,
  });
  if (!decided.ok) throw decided.error;
  return decided.value;
}

/** Tasks that wait, of many tenants. Appended without asking for answers: nobody else writes here. */
export async function fillWithWaiting(nc: NatsConnection, names: Names, tasks: number): Promise<void> {
  for (let n = 1; n <= tasks; n += 1) {
    const event = ingested('bench', `tenant-${n % TENANTS}`);
    nc.publish(names.taskEvent(event.tenant, event.type, event.taskId, event.kind), encodeEvent(event));
    if (n % FLUSH_EVERY === 0) await nc.flush();
  }
  await nc.flush();
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  while ((await jsm.streams.info(names.streams.tasks)).state.messages < tasks)
    await new Promise((resolve) => setTimeout(resolve, 50));
}
