import { parentPort, workerData } from 'node:worker_threads';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import { connectNats, type NatsSettings } from '../platform/nats.ts';
import { IN_PROGRESS } from './delivery.ts';
import { type FromLeaseThread, LeaseRenewal, type ToLeaseThread } from './lease-renewal.ts';
import { type HeldLease, LeaseTable } from './lease-table.ts';
import { monotonicMs } from './monotonic.ts';
import type { WorkerEntry, WorkerIdentity } from './worker-entry.ts';

/** What the thread is started with. */
export interface LeaseThreadData {
  readonly shared: SharedArrayBuffer;
  readonly nats: NatsSettings;
  readonly identity: WorkerIdentity;
  /** Subject of this worker's key in the registry bucket. */
  readonly entrySubject: string;
  readonly scanEveryMs: number;
  readonly maxBlockedMs: number;
}

/**
 * Keeps the worker's leases alive and its registry entry fresh, over a connection of its own, whatever the main thread
 * does. Stops renewing when the main thread has been stuck longer than `maxBlockedMs` or an attempt is past its time.
 */
async function run(data: LeaseThreadData, port: NonNullable<typeof parentPort>): Promise<void> {
  const table = new LeaseTable(data.shared);
  const renewal = new LeaseRenewal({ table, maxBlockedMs: data.maxBlockedMs });
  const progress = new Map<string, WorkerEntry['active'][number]>();
  const nc = await connectNats(data.nats, `${data.identity.id} leases`);
  const say = (message: FromLeaseThread) => port.postMessage(message);

  const scan = setInterval(() => {
    for (const lease of renewal.due(monotonicMs())) void renew(nc, renewal, lease);
  }, data.scanEveryMs);
  let degraded: string | undefined;
  const write = () => writeEntry(nc, data, renewal, { progress, degraded });
  const writing = setInterval(write, data.identity.everyMs);
  write();

  const stop = async () => {
    clearInterval(scan);
    clearInterval(writing);
    if (!nc.isClosed()) {
      const gone = headers();
      gone.set('KV-Operation', 'DEL');
      nc.publish(data.entrySubject, '', { headers: gone });
      await nc.drain().catch(() => undefined);
    }
    say({ kind: 'stopped' });
    port.close();
  };
  port.on('message', (message: ToLeaseThread) => {
    if (message.kind === 'stop') void stop();
    else if (message.kind === 'progress') progress.set(message.task, message);
    else {
      degraded = message.reason;
      write();
    }
  });
  // Whoever sees 'started' may rely on the entry being there.
  await nc.flush();
  say({ kind: 'started' });
}

/** A renewal that is not answered is unknown, not lost: it is tried again, and the lease counts from the last one that was. */
async function renew(nc: NatsConnection, renewal: LeaseRenewal, lease: HeldLease): Promise<void> {
  const sentAt = monotonicMs();
  renewal.sent(lease, sentAt);
  try {
    await nc.request(lease.ackSubject, IN_PROGRESS, { timeout: Math.max(250, lease.ackWaitMs / 6) });
    renewal.confirmed(lease, sentAt);
  } catch {
    renewal.unanswered(lease);
  }
}

function writeEntry(
  nc: NatsConnection,
  { identity, entrySubject }: LeaseThreadData,
  renewal: LeaseRenewal,
  {
    progress,
    degraded,
  }: { progress: Map<string, WorkerEntry['active'][number]>; degraded: string | undefined },
): void {
  if (nc.isClosed()) return;
  const now = monotonicMs();
  const alive = renewal.alive(now);
  const active = alive.map(({ task, attempt }) => {
    const told = progress.get(task);
    return told?.attempt === attempt ? { task, attempt, progress: told.progress ?? null } : { task, attempt };
  });
  const tasks = new Set(alive.map(({ task }) => task));
  for (const task of progress.keys()) if (!tasks.has(task)) progress.delete(task);
  const entry: WorkerEntry = {
    ...identity,
    seenAt: Date.now(),
    blockedMs: Math.round(renewal.blockedMs(now)),
    active,
    ...(degraded === undefined ? {} : { degraded }),
  };
  nc.publish(entrySubject, JSON.stringify(entry));
}

if (parentPort !== null) await run(workerData as LeaseThreadData, parentPort);
