import { decodeEvent } from '../domain/codec.ts';
import { TaskledgerError } from '../domain/errors.ts';
import type { Recorded } from '../domain/events.ts';
import type { LogBatch } from './event-log.ts';
import { sourceSeqIn } from './history.ts';
import type { Delivered } from './ordered-pull.ts';

interface BatchOptions {
  readonly stream?: 'tasks' | 'history';
  readonly fromSeq: number;
  /** Everything up to here was read before. */
  readonly after: number;
}

/**
 * What was delivered, decoded; undefined when nothing of it is new. HISTORY may hold a stretch twice: when its leader
 * changes, the server may take the last messages from TASKS again. They come in order, so what is not new is a repeat.
 */
export function batchOf(
  taken: readonly Pick<Delivered, 'seq' | 'storedAt' | 'message'>[],
  { stream, fromSeq, after }: BatchOptions,
): LogBatch | undefined {
  const events: Recorded[] = [];
  const unreadable: { seq: number; text: string; reason: string }[] = [];
  let lastSeq = 0;
  for (const delivered of taken) {
    const seq = stream === 'history' ? sourceSeqOf(delivered) : delivered.seq;
    if (seq < fromSeq || seq <= Math.max(after, lastSeq)) continue;
    lastSeq = seq;
    const { data } = delivered.message;
    const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString();
    try {
      events.push({ seq, storedAt: delivered.storedAt, event: decodeEvent(text) });
    } catch (error) {
      unreadable.push({ seq, text, reason: (error as Error).message });
    }
  }
  return lastSeq === 0 ? undefined : { events, unreadable, lastSeq };
}

function sourceSeqOf({ message, seq }: Pick<Delivered, 'seq' | 'message'>): number {
  const source = sourceSeqIn(message.headers);
  if (source !== undefined) return source;
  throw new TaskledgerError('event_unreadable', { seq, reason: 'HISTORY names no sequence of TASKS' });
}
