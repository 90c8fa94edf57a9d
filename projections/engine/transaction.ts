import type pg from 'pg';
import { encodeEvent } from '../../src/domain/codec.ts';
import type { Recorded } from '../../src/domain/events.ts';
import type { LogBatch } from '../../src/log/event-log.ts';
import { isDataError } from '../../src/platform/postgres.ts';
import { advanceCheckpoints, setAside } from './checkpoint.ts';
import type { Progress, Projection } from './projection.ts';
import { storableText } from './sql-text.ts';

/** `apply` threw: the events are at fault, not the database. */
export class Indigestible extends Error {
  override readonly name = 'Indigestible';
}

/** An event that a projection has passed over. */
export interface Poison {
  readonly projection: string;
  readonly seq: number;
  readonly error: string;
}

/** Whether the same events would fail again for ever. */
export const isAboutEvents = (error: unknown): boolean => error instanceof Indigestible || isDataError(error);

/**
 * Applies a batch to every projection that has not seen it and moves their checkpoints to its end, all or nothing.
 * Throws Superseded when another projector did so first.
 */
export async function applyBatch(
  client: pg.ClientBase,
  progress: readonly Progress[],
  batch: LogBatch,
): Promise<Poison[]> {
  const digested = progress.map(({ projection, seq }) => ({
    projection,
    changes: digest(projection, after(batch.events, seq)),
  }));
  for (const { projection, changes } of digested) await projection.prepare?.(client, changes);
  return inTransaction(client, async () => {
    await advanceCheckpoints(client, progress, batch.lastSeq);
    for (const { projection, changes } of digested) await projection.write(client, changes);
    return setUnreadableAside(client, progress, batch);
  });
}

/**
 * Like `applyBatch`, for a batch of at most one event that has made a larger one fail: a projection that cannot digest
 * it sets it aside, the others apply it.
 */
export async function applyOrSetAside(
  client: pg.ClientBase,
  progress: readonly Progress[],
  batch: LogBatch,
): Promise<Poison[]> {
  const morsels: Morsel[] = [];
  for (const { projection, seq } of progress) {
    for (const recorded of after(batch.events, seq)) morsels.push(await cut(client, projection, recorded));
  }
  return inTransaction(client, async () => {
    await advanceCheckpoints(client, progress, batch.lastSeq);
    const poison = await setUnreadableAside(client, progress, batch);
    for (const morsel of morsels) {
      const error = morsel.error ?? (await tryToWrite(client, morsel));
      if (error === undefined) continue;
      const { recorded, projection } = morsel;
      const found = { projection: projection.name, seq: recorded.seq, error: storableText(error) };
      await setAside(client, { ...found, event: storableText(encodeEvent(recorded.event)) });
      poison.push(found);
    }
    return poison;
  });
}

/** One event for one projection, ready to be written or already known to be indigestible. */
interface Morsel {
  readonly projection: Projection;
  readonly recorded: Recorded;
  readonly changes?: unknown;
  readonly error?: string;
}

async function cut(client: pg.ClientBase, projection: Projection, recorded: Recorded): Promise<Morsel> {
  try {
    const changes = digest(projection, [recorded]);
    await projection.prepare?.(client, changes);
    return { projection, recorded, changes };
  } catch (error) {
    return { projection, recorded, error: blame(error) };
  }
}

/** The reason when the event is at fault, undefined when it was written. */
async function tryToWrite(
  client: pg.ClientBase,
  { projection, changes }: Morsel,
): Promise<string | undefined> {
  await client.query('savepoint before_event');
  try {
    await projection.write(client, changes);
    await client.query('release savepoint before_event');
    return undefined;
  } catch (error) {
    const reason = blame(error);
    await client.query('rollback to savepoint before_event');
    return reason;
  }
}

/** Why the event is at fault; throws the error on when it is not. */
function blame(error: unknown): string {
  if (!isAboutEvents(error)) throw error;
  return error instanceof Error ? error.message : String(error);
}

async function setUnreadableAside(
  client: pg.ClientBase,
  progress: readonly Progress[],
  { unreadable }: LogBatch,
): Promise<Poison[]> {
  const poison: Poison[] = [];
  for (const { seq, text, reason } of unreadable) {
    for (const { projection, seq: seen } of progress) {
      if (seq <= seen) continue;
      poison.push({ projection: projection.name, seq, error: reason });
      await setAside(client, { projection: projection.name, seq, event: storableText(text), error: reason });
    }
  }
  return poison;
}

function digest(projection: Projection, events: readonly Recorded[]): unknown {
  try {
    return projection.apply(events);
  } catch (cause) {
    throw new Indigestible(`${projection.name}: ${(cause as Error).message}`, { cause });
  }
}

/** The events after a sequence; nearly always all of them. */
const after = (events: readonly Recorded[], seq: number): readonly Recorded[] => {
  const first = events[0];
  return first === undefined || first.seq > seq ? events : events.filter((event) => event.seq > seq);
};

async function inTransaction<T>(client: pg.ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query('begin');
  try {
    const result = await work();
    await client.query('commit');
    return result;
  } catch (error) {
    // On a broken connection this fails too, and the server rolls back by itself.
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}
