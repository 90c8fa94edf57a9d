import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { decodeEvent } from '../domain/codec.ts';
import { TaskledgerError } from '../domain/errors.ts';
import type { Recorded } from '../domain/events.ts';
import { Inbox } from './inbox.ts';
import type { Names } from './subjects.ts';

/** Events asked for at once. A task has 5 to 30. */
const PAGE = 256;
const TIMEOUT_MS = 2_000;
/** Tries of one request: an election or a reconnect takes seconds. */
const TRIES = 6;
/** A replica that lags is asked again after so long, and then the leader. */
const LAG_PAUSES_MS = [2, 5, 10, 20];

/** Direct reads: any replica answers, so what was written a moment ago may be missing unless `atLeastSeq` is given. */
export interface TaskReader {
  readonly readTask: (tenant: string, taskId: string, atLeastSeq?: number) => Promise<Recorded[]>;
  readonly readEvent: (seq: number) => Promise<Recorded | undefined>;
  readonly close: () => void;
}

export function createTaskReader({ nc, names }: { nc: NatsConnection; names: Names }): TaskReader {
  const inbox = new Inbox(nc);
  const directSubject = `$JS.API.DIRECT.GET.${names.streams.tasks}`;
  const leaderSubject = `$JS.API.STREAM.MSG.GET.${names.streams.tasks}`;

  /** Sends one request and collects the answers until `isLast`. */
  const ask = (subject: string, query: object, isLast: (answer: Msg) => boolean): Promise<Msg[]> =>
    new Promise((resolve, reject) => {
      const answers: Msg[] = [];
      const end = (finish: () => void): void => {
        clearTimeout(timer);
        inbox.close(token);
        finish();
      };
      const token = inbox.open((answer) => {
        if (isNoResponders(answer)) return end(() => reject(new Error('no responders')));
        answers.push(answer);
        if (isLast(answer)) end(() => resolve(answers));
      });
      const timer = setTimeout(() => end(() => reject(new Error('no answer in time'))), TIMEOUT_MS);
      try {
        nc.publish(subject, JSON.stringify(query), { reply: inbox.reply(token) });
      } catch (error) {
        end(() => reject(error as Error));
      }
    });

  const askPatiently = async (...request: Parameters<typeof ask>): Promise<Msg[]> => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await ask(...request);
      } catch (cause) {
        const reason = (cause as Error).message;
        if (attempt === TRIES || nc.isClosed())
          throw new TaskledgerError('log_unavailable', { reason: `reading: ${reason}` }, { cause });
        await pause(Math.min(500, 10 * 4 ** attempt));
      }
    }
  };

  /** All events under the fence from `fromSeq`, as one replica knows them. */
  const readReplica = async (fence: string, fromSeq: number): Promise<Recorded[]> => {
    const events: Recorded[] = [];
    for (let seq = fromSeq; ; ) {
      const answers = await askPatiently(
        directSubject,
        { seq, batch: PAGE, next_by_subj: fence },
        (answer) => statusOf(answer) !== undefined,
      );
      const end = answers.pop();
      for (const answer of answers) events.push(recordedOf(answer));
      const last = events.at(-1);
      if (end === undefined || statusOf(end) !== 204 || last === undefined || answers.length < PAGE)
        return events;
      seq = last.seq + 1;
    }
  };

  /** The same from the stream's leader, one at a time. */
  const readLeader = async (fence: string, fromSeq: number): Promise<Recorded[]> => {
    const events: Recorded[] = [];
    for (let seq = fromSeq; ; ) {
      const [answer] = await askPatiently(leaderSubject, { seq, next_by_subj: fence }, () => true);
      const stored = answer === undefined ? undefined : storedMessageOf(answer);
      if (stored === undefined) return events;
      events.push(stored);
      seq = stored.seq + 1;
    }
  };

  return {
    async readTask(tenant, taskId, atLeastSeq = 0) {
      const fence = names.fence(tenant, taskId);
      let events = await readReplica(fence, 1);
      for (const pauseMs of LAG_PAUSES_MS) {
        if (lastSeqOf(events) >= atLeastSeq) return events;
        await pause(pauseMs);
        events = [...events, ...(await readReplica(fence, lastSeqOf(events) + 1))];
      }
      if (lastSeqOf(events) >= atLeastSeq) return events;
      return [...events, ...(await readLeader(fence, lastSeqOf(events) + 1))];
    },
    async readEvent(seq) {
      const [answer] = await askPatiently(directSubject, { seq }, () => true);
      if (answer !== undefined && statusOf(answer) === undefined) return recordedOf(answer);
      const [fromLeader] = await askPatiently(leaderSubject, { seq }, () => true);
      return fromLeader === undefined ? undefined : storedMessageOf(fromLeader);
    },
    close() {
      if (!nc.isClosed()) inbox.end();
    },
  };
}

const lastSeqOf = (events: readonly Recorded[]): number => events.at(-1)?.seq ?? 0;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** The status of a message without content: 204 ends a batch, 404 says that there is nothing. */
function statusOf(answer: Msg): number | undefined {
  const code = answer.headers?.code ?? 0;
  return code === 0 ? undefined : code;
}

const isNoResponders = (answer: Msg): boolean => answer.data.length === 0 && statusOf(answer) === 503;

function recordedOf(answer: Msg): Recorded {
  const seq = Number(answer.headers?.get('Nats-Sequence'));
  const storedAt = Date.parse(answer.headers?.get('Nats-Time-Stamp') ?? '');
  return { seq, storedAt, event: decode(seq, textOf(answer.data)) };
}

interface StoredAnswer {
  readonly message?: { readonly seq: number; readonly time: string; readonly data?: string };
  readonly error?: { readonly code: number; readonly description: string };
}

function storedMessageOf(answer: Msg): Recorded | undefined {
  const { message, error } = JSON.parse(textOf(answer.data)) as StoredAnswer;
  if (error !== undefined && error.code !== 404)
    throw new TaskledgerError('log_unavailable', { reason: `reading: ${error.description}` });
  if (message === undefined) return undefined;
  const text = Buffer.from(message.data ?? '', 'base64').toString();
  return { seq: message.seq, storedAt: Date.parse(message.time), event: decode(message.seq, text) };
}

function decode(seq: number, text: string): Recorded['event'] {
  try {
    return decodeEvent(text);
  } catch (cause) {
    throw new TaskledgerError('event_unreadable', { seq, reason: (cause as Error).message }, { cause });
  }
}

const textOf = (data: Uint8Array): string =>
  Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString();
