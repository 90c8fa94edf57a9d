import type { JetStreamManager, StoredMsg } from '@nats-io/jetstream';
import type { MsgHdrs } from '@nats-io/transport-node';
import type { Names } from './subjects.ts';

/** Where an event lies in HISTORY, and which sequence it has in TASKS. */
export interface HistoryPlace {
  readonly seq: number;
  readonly sourceSeq: number;
  /** When HISTORY stored it, in ms since 1970: a moment after TASKS did. */
  readonly storedAt: number;
}

/** A message of HISTORY. `sourceSeq`: undefined when it was not drawn from TASKS. */
export interface HistoryMessage {
  readonly seq: number;
  readonly sourceSeq: number | undefined;
  readonly storedAt: number;
}

export interface HistoryBounds {
  readonly first: HistoryPlace;
  readonly last: HistoryPlace;
  readonly messages: number;
}

export interface History {
  /** Undefined when HISTORY is empty. */
  bounds(): Promise<HistoryBounds | undefined>;
  /** The first place that satisfies a condition which, once true, stays true. About 30 requests, however long HISTORY is. */
  find(condition: (place: HistoryPlace) => boolean): Promise<HistoryPlace | undefined>;
  /** The first message at or after a sequence of HISTORY. */
  at(seq: number): Promise<HistoryPlace | undefined>;
  /** The same, also when it is no event of TASKS. */
  readonly messageAt: (seq: number) => Promise<HistoryMessage | undefined>;
}

/** The TASKS sequence that the server noted: `Nats-Stream-Source: <stream> <sequence> ...`. */
export function sourceSeqIn(headers: MsgHdrs | undefined): number | undefined {
  const source = Number(headers?.get('Nats-Stream-Source').split(' ')[1]);
  return Number.isInteger(source) && source > 0 ? source : undefined;
}

/** The first message of a stream at or after a sequence; null when there is none. */
export function messageFrom(jsm: JetStreamManager, stream: string, seq: number): Promise<StoredMsg | null> {
  // The server skips what is gone; the client's type does not know.
  const query: { seq: number; next_by_subj: string } = { seq, next_by_subj: '>' };
  return jsm.streams.getMessage(stream, query);
}

/** Looks into HISTORY without reading it. */
export function openHistory(jsm: JetStreamManager, names: Names): History {
  const stream = names.streams.history;

  const messageAt = async (seq: number): Promise<HistoryMessage | undefined> => {
    const found = await messageFrom(jsm, stream, seq);
    if (found === null) return undefined;
    return { seq: found.seq, sourceSeq: sourceSeqIn(found.header), storedAt: found.time.getTime() };
  };

  const at = async (seq: number): Promise<HistoryPlace | undefined> => {
    const found = await messageAt(seq);
    return found?.sourceSeq === undefined ? undefined : { ...found, sourceSeq: found.sourceSeq };
  };

  const bounds = async (): Promise<HistoryBounds | undefined> => {
    const { state } = await jsm.streams.info(stream);
    if (state.messages === 0) return undefined;
    const [first, last] = await Promise.all([at(state.first_seq), at(state.last_seq)]);
    return first === undefined || last === undefined ? undefined : { first, last, messages: state.messages };
  };

  return {
    at,
    messageAt,
    bounds,
    async find(condition) {
      const found = await bounds();
      if (found === undefined || !condition(found.last)) return undefined;
      let low = found.first.seq;
      let high = found.last.seq;
      let best = found.last;
      while (low < high) {
        const middle = Math.floor((low + high) / 2);
        const place = (await at(middle)) ?? best;
        if (condition(place)) {
          best = place;
          high = middle;
        } else low = place.seq + 1;
      }
      return best;
    },
  };
}
