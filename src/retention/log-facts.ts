import { type JetStreamManager, jetstreamManager, type StreamInfo } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { type History, type HistoryPlace, openHistory } from '../log/history.ts';
import type { Names } from '../log/subjects.ts';
import { firstNeeded, type Kept, lastWord } from './judge.ts';
import type { Needs } from './records.ts';

/** What the two streams say of themselves. */
export interface StreamFacts {
  readonly logId: string;
  readonly historyId: string;
  readonly lastSeq: number;
  readonly history: StreamInfo['state'];
}

export interface LogFacts {
  readonly history: History;
  streams(): Promise<StreamFacts>;
  /** When the events were stored that somebody needs. What is gone already is as old as can be. */
  kept(needs: Needs, state: StreamInfo['state']): Promise<Kept>;
}

export async function openLogFacts(nc: NatsConnection, names: Names): Promise<LogFacts> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const history = openHistory(jsm, names);
  return {
    history,
    async streams() {
      const { tasks, history: copy } = names.streams;
      const [log, own] = await Promise.all([
        jsm.streams.info(tasks),
        jsm.streams.info(copy, { deleted_details: true }),
      ]);
      return {
        logId: idOf(log),
        historyId: idOf(own),
        lastSeq: log.state.last_seq,
        history: own.state,
      };
    },
    async kept(needs, state) {
      const first = firstNeeded(needs);
      const place = await history.find(({ sourceSeq }) => sourceSeq >= first.seq);
      const last = lastWord(needs);
      return {
        ...(place !== undefined && {
          history: {
            ...first,
            at: place.sourceSeq > first.seq ? 0 : place.storedAt,
            bytes: bytesFrom(place, state),
          },
        }),
        ...(last !== undefined && {
          tasks: { ...last, at: await storedAt(jsm, names.streams.tasks, last.seq) },
        }),
      };
    },
  };
}

const idOf = ({ created }: StreamInfo): string => new Date(created).toISOString();

/** Roughly: as if all messages were equal. */
const bytesFrom = ({ seq }: HistoryPlace, { bytes, first_seq: first, last_seq: last }: StreamInfo['state']) =>
  Math.round((bytes * (last - seq + 1)) / Math.max(1, last - first + 1));

async function storedAt(jsm: JetStreamManager, stream: string, seq: number): Promise<number> {
  const found = await jsm.streams.getMessage(stream, { seq });
  return found === null ? 0 : found.time.getTime();
}
