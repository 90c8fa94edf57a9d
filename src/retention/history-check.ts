import type { HistoryMessage } from '../log/history.ts';
import type { Finding } from './records.ts';

/** A message of HISTORY that is known to be the event of TASKS that it should be. */
export interface Anchor {
  readonly historySeq: number;
  readonly sourceSeq: number;
}

/** Messages of HISTORY between two looks. Small, so that a gap and a doubling rarely make up for each other in one. */
const WINDOW = 500;

export interface Checked {
  readonly anchor: Anchor;
  readonly findings: readonly Omit<Finding, 'foundAt'>[];
}

/**
 * Compares HISTORY with TASKS after `anchor`, up to `lastSeq` of HISTORY, by looking at one message in 500: sequences of
 * TASKS have no holes, so as long as both sequences move by the same, every event is there once and in its order. Where they
 * do not, the place is found by halving. `look` gives the first message at or after a sequence.
 */
export async function checkHistory(
  look: (seq: number) => Promise<HistoryMessage | undefined>,
  from: Anchor,
  lastSeq: number,
): Promise<Checked> {
  const findings: Omit<Finding, 'foundAt'>[] = [];
  let anchor = from;
  while (anchor.historySeq < lastSeq) {
    const probe = await look(Math.min(anchor.historySeq + WINDOW, lastSeq));
    if (probe === undefined) break;
    if (agrees(probe, anchor)) {
      anchor = { historySeq: probe.seq, sourceSeq: expectedAt(anchor, probe.seq) };
      continue;
    }
    const odd = await firstOdd(look, anchor, probe);
    const expected = expectedAt(anchor, odd.seq);
    findings.push(findingAt(odd, expected));
    // A foreign message takes the place of none.
    anchor = { historySeq: odd.seq, sourceSeq: odd.sourceSeq ?? expected - 1 };
  }
  return { anchor, findings };
}

const expectedAt = ({ historySeq, sourceSeq }: Anchor, seq: number): number => sourceSeq + seq - historySeq;
const agrees = ({ seq, sourceSeq }: HistoryMessage, anchor: Anchor): boolean =>
  sourceSeq === expectedAt(anchor, seq);

function findingAt({ seq, sourceSeq }: HistoryMessage, expected: number): Omit<Finding, 'foundAt'> {
  if (sourceSeq === undefined)
    return { what: 'foreign', fromSeq: expected, toSeq: expected, historySeq: seq };
  if (sourceSeq > expected)
    return { what: 'missing', fromSeq: expected, toSeq: sourceSeq - 1, historySeq: seq };
  return { what: 'doubled', fromSeq: sourceSeq, toSeq: expected - 1, historySeq: seq };
}

/** The first message after the anchor that does not agree with it; `probe` does not. */
async function firstOdd(
  look: (seq: number) => Promise<HistoryMessage | undefined>,
  anchor: Anchor,
  probe: HistoryMessage,
): Promise<HistoryMessage> {
  let odd = probe;
  let low = anchor.historySeq + 1;
  while (low < odd.seq) {
    const middle = Math.floor((low + odd.seq) / 2);
    const found = await look(middle);
    if (found === undefined || found.seq >= odd.seq) {
      // Nothing is left between the middle and the odd one.
      const before = await lastBefore(look, low, middle);
      if (before === undefined || agrees(before, anchor)) return odd;
      odd = before;
    } else if (agrees(found, anchor)) low = found.seq + 1;
    else odd = found;
  }
  return odd;
}

/** The messages from `low` on and before `end`, one by one: there are few where much is deleted. */
async function lastBefore(
  look: (seq: number) => Promise<HistoryMessage | undefined>,
  low: number,
  end: number,
): Promise<HistoryMessage | undefined> {
  let last: HistoryMessage | undefined;
  for (let seq = low; seq < end; ) {
    const found = await look(seq);
    if (found === undefined || found.seq >= end) break;
    last = found;
    seq = found.seq + 1;
  }
  return last;
}
