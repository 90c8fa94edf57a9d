import { setTimeout as delay } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import pg from 'pg';
import type { AuditRow } from '../../../projections/audit/apply.ts';
import type { Recorded } from '../../../src/domain/events.ts';
import { createLogReader } from '../../../src/log/reader.ts';
import type { Names } from '../../../src/log/subjects.ts';
import { silentLogger as logger } from '../../../src/observe/log.ts';

const STREAM_WITHIN_MS = 60_000;
const POLL_MS = 100;

export interface Copies {
  readonly log: readonly Recorded[];
  readonly history: readonly Recorded[];
  readonly audit: readonly AuditRow[];
  /** What could not be waited for, for people; the checker finds what follows from it. */
  readonly complaints: readonly string[];
}

/** Reads the log and what was made from it, once both have caught up or the time is over. Call it when nothing moves. */
export async function collectCopies(options: {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly databaseUrl: string;
  readonly catchUpMs: number;
}): Promise<Copies> {
  const { nc, names, databaseUrl, catchUpMs } = options;
  const { streams } = names;
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const lastSeq = async (): Promise<number> => (await jsm.streams.info(streams.tasks)).state.last_seq;
  const complaints: string[] = [];
  const catchUp = async (what: string, isThere: () => Promise<boolean>): Promise<void> => {
    for (const deadline = Date.now() + catchUpMs; Date.now() < deadline; await delay(POLL_MS))
      if (await isThere()) return;
    complaints.push(`${what} has not caught up with the log in ${catchUpMs} ms`);
  };
  const client = new pg.Client({ connectionString: databaseUrl });
  client.on('error', () => {});
  await client.connect();
  try {
    const end = await lastSeq();
    await catchUp('the audit', async () => {
      const { rows } = await client.query<{ seq: string | null }>(
        "select seq from projection_checkpoint where name = 'audit'",
      );
      return Number(rows[0]?.seq ?? 0) >= end;
    });
    const { rows } = await client.query<AuditRow>(AUDIT);
    const log = await readAll(nc, names, 'tasks', end);
    await catchUp('HISTORY', async () => {
      const { messages } = (await jsm.streams.info(streams.history)).state;
      return messages >= log.length;
    });
    return { log, history: await readAll(nc, names, 'history', end), audit: rows, complaints };
  } finally {
    await client.end();
  }
}

/** How many messages a stream holds. */
export const storedIn = async (nc: NatsConnection, stream: string): Promise<number> =>
  (await (await jetstreamManager(nc, { checkAPI: false })).streams.info(stream)).state.messages;

/** In the shape that `apply` gives. */
const AUDIT = `
  select seq::float8 as seq, round(extract(epoch from stored_at) * 1000)::float8 as "storedAt",
    round(extract(epoch from at) * 1000)::float8 as at, event_id as "eventId", task_id as "taskId", tenant, type, kind,
    from_status as "from", round, attempt, priority, actor_kind as "actorKind", actor_id as "actorId", trace,
    data::text as data
  from audit order by seq`;

/** Everything up to a sequence; less when the stream does not have it within its time. */
async function readAll(
  nc: NatsConnection,
  names: Names,
  stream: 'tasks' | 'history',
  end: number,
): Promise<Recorded[]> {
  const all: Recorded[] = [];
  const reader = createLogReader(
    { nc, names, logger },
    {
      stream,
      fromSeq: 1,
      maxBatch: 2_000,
      gatherMs: 0,
      onBatch: ({ events }) => void all.push(...events),
    },
  );
  await reader.start();
  if (end > 0) await Promise.race([reader.whenReached(end).catch(() => undefined), delay(STREAM_WITHIN_MS)]);
  await reader.stop();
  return all;
}
