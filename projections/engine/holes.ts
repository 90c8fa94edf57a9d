import type { LogBatch } from '../../src/log/event-log.ts';

/** Sequences that a batch should have had: both ends included. */
export interface Hole {
  readonly from: number;
  readonly to: number;
}

/** What is missing between `previous`, the last sequence before the batch, and the batch's end. Sequences of a log have no holes by themselves. */
export function holesIn(batch: LogBatch, previous: number): Hole[] {
  if (batch.events.length + batch.unreadable.length === batch.lastSeq - previous) return [];
  const present = [...batch.events, ...batch.unreadable].map(({ seq }) => seq).sort((a, b) => a - b);
  const holes: Hole[] = [];
  let expected = previous + 1;
  for (const seq of [...present, batch.lastSeq + 1]) {
    if (seq > expected) holes.push({ from: expected, to: seq - 1 });
    expected = seq + 1;
  }
  return holes;
}
