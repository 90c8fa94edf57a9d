import type { NatsConnection } from '@nats-io/transport-node';
import { decodeEvent } from '../domain/codec.ts';
import { TaskledgerError } from '../domain/errors.ts';
import { type EventKind, eventToken, type Recorded } from '../domain/events.ts';
import { openStreamGet, type Stored } from './stream-get.ts';
import type { Names } from './subjects.ts';

/** A replica that lags is asked again after so long, and then the leader. */
const LAG_PAUSES_MS = [2, 5, 10, 20];
/** Of these a task has one at most, so the last is all. */
const UNIQUE: ReadonlySet<EventKind> = new Set(['INGESTED', 'REJECTED']);
/** They change no status, so that the chain of statuses does not show when one is missing. */
const STATUSLESS: ReadonlySet<EventKind> = new Set([
  'CANCEL_REQUESTED',
  'CARRIED',
  'DISCARDED',
  'RESCHEDULED',
]);

export interface TaskReader {
  readonly readTask: (tenant: string, taskId: string, atLeastSeq?: number) => Promise<Recorded[]>;
  readonly readLasts: (tenant: string, taskId: string, atLeastSeq?: number) => Promise<Recorded[]>;
  readonly readEvent: (seq: number) => Promise<Recorded | undefined>;
  readonly close: () => void;
}

/**
 * Reads single tasks. The last event of each kind comes in one request; a task without retries has no others, which its
 * chain of statuses proves. Only the earlier ones of a longer history are fetched one by one.
 */
export function createTaskReader({ nc, names }: { nc: NatsConnection; names: Names }): TaskReader {
  const get = openStreamGet(nc, names.streams.tasks);

  /** The last event of each kind, not older than `atLeastSeq`; undefined when no replica has got that far. */
  const lastOfEachKind = async (tenant: string, taskId: string, atLeastSeq: number) => {
    const fence = names.fence(tenant, taskId);
    for (const pauseMs of [...LAG_PAUSES_MS, 0]) {
      const lasts = await get.lastOfEach(fence);
      if (lasts.some(({ seq }) => seq >= atLeastSeq) || atLeastSeq === 0) return lasts;
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
    }
    return undefined;
  };

  /** All events of a task, one by one. */
  const allFromLeader = async (tenant: string, taskId: string): Promise<Stored[]> => {
    const all: Stored[] = [];
    const fence = names.fence(tenant, taskId);
    for (let seq = 1; ; ) {
      const found = await get.next(fence, seq, 'leader');
      if (found === undefined) return all;
      all.push(found);
      seq = found.seq + 1;
    }
  };

  /** The events of one kind before its last one, which is known. */
  const earlierThan = async (last: Stored): Promise<Stored[]> => {
    const earlier: Stored[] = [];
    for (let seq = 1; ; ) {
      const found =
        (await get.next(last.subject, seq, 'replica')) ?? (await get.next(last.subject, seq, 'leader'));
      if (found === undefined || found.seq >= last.seq) return earlier;
      earlier.push(found);
      seq = found.seq + 1;
    }
  };

  return {
    async readTask(tenant, taskId, atLeastSeq = 0) {
      const lasts = await lastOfEachKind(tenant, taskId, atLeastSeq);
      if (lasts === undefined) return inOrder((await allFromLeader(tenant, taskId)).map(recordedOf));
      const known = inOrder(lasts.map(recordedOf));
      if (isWhole(known)) return known;
      const repeatable = lasts.filter(({ subject }) => !isUnique(subject));
      const earlier = await Promise.all(repeatable.map((last) => earlierThan(last)));
      return inOrder([...known, ...earlier.flat().map(recordedOf)]);
    },
    async readLasts(tenant, taskId, atLeastSeq = 0) {
      const lasts =
        (await lastOfEachKind(tenant, taskId, atLeastSeq)) ?? (await allFromLeader(tenant, taskId));
      return inOrder(lasts.map(recordedOf));
    },
    async readEvent(seq) {
      const found = (await get.at(seq, 'replica')) ?? (await get.at(seq, 'leader'));
      return found === undefined ? undefined : recordedOf(found);
    },
    close: get.close,
  };
}

/**
 * Whether the last events of each kind are all events. An event that is missing here is followed by one of its kind;
 * a gap that leaves the chain of statuses whole would have to return to the status it began with, and the event
 * of that status before the gap would then not be the last of its kind.
 */
export function isWhole(lasts: readonly Recorded[]): boolean {
  let status: string | null = null;
  for (const { event } of lasts) {
    if (event.from !== status || STATUSLESS.has(event.kind)) return false;
    status = event.kind;
  }
  return true;
}

const uniqueEndings = [...UNIQUE].map((kind) => `.${eventToken(kind)}`);
const isUnique = (subject: string): boolean => uniqueEndings.some((ending) => subject.endsWith(ending));

const inOrder = (events: readonly Recorded[]): Recorded[] => events.toSorted((a, b) => a.seq - b.seq);

function recordedOf({ seq, storedAt, text }: Stored): Recorded {
  try {
    return { seq, storedAt, event: decodeEvent(text) };
  } catch (cause) {
    throw new TaskledgerError('event_unreadable', { seq, reason: (cause as Error).message }, { cause });
  }
}
