import type { Msg, NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import { Inbox } from './inbox.ts';

/** A message as the store holds it. `storedAt` is the server's time in ms since 1970. */
export interface Stored {
  readonly seq: number;
  readonly storedAt: number;
  readonly subject: string;
  readonly text: string;
}

export interface StreamGet {
  /**
   * The last message of each subject that the filter matches, as one replica knows them, in no order. 50 to 100 us of
   * server CPU. (Asking for a batch of the next messages on a wildcard costs 20 ms and more: the server scans to the end.)
   */
  readonly lastOfEach: (filter: string) => Promise<Stored[]>;
  /** The first message at or after `seq` on a subject, about 30 us for one without wildcards; from the leader when asked. */
  readonly next: (subject: string, seq: number, from: Source) => Promise<Stored | undefined>;
  readonly at: (seq: number, from: Source) => Promise<Stored | undefined>;
  readonly close: () => void;
}

/** A replica may lag; the leader knows everything that was acknowledged. */
export type Source = 'replica' | 'leader';

const TIMEOUT_MS = 2_000;
/** Tries of one request: an election or a reconnect takes seconds. */
const TRIES = 6;
const BATCH_END = 204;

/** Reads of single messages, without a consumer. Throws `log_unavailable` when the stream does not answer. */
export function openStreamGet(nc: NatsConnection, stream: string): StreamGet {
  const requests = new Map<string, (answer: Msg) => void>();
  const inbox = new Inbox(nc, (token, answer) => requests.get(token)?.(answer));
  const direct = `$JS.API.DIRECT.GET.${stream}`;
  const leader = `$JS.API.STREAM.MSG.GET.${stream}`;

  /** Sends one request and collects the answers up to the last. */
  const ask = (subject: string, query: object, isLast: (answer: Msg) => boolean): Promise<Msg[]> =>
    new Promise((resolve, reject) => {
      const answers: Msg[] = [];
      const token = inbox.newToken();
      const end = (finish: () => void): void => {
        clearTimeout(timer);
        requests.delete(token);
        finish();
      };
      requests.set(token, (answer) => {
        answers.push(answer);
        if (isNoResponders(answer)) end(() => reject(new Error('no responders')));
        else if (isLast(answer)) end(() => resolve(answers));
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
        if (attempt === TRIES || nc.isClosed()) throw unreadable((cause as Error).message, cause);
        await new Promise((resolve) => setTimeout(resolve, Math.min(500, 10 * 4 ** attempt)));
      }
    }
  };

  const one = async (query: object, from: Source): Promise<Stored | undefined> => {
    const [answer] = await askPatiently(from === 'leader' ? leader : direct, query, () => true);
    if (answer === undefined) return undefined;
    return from === 'leader' ? fromLeader(answer) : fromReplica(answer);
  };

  return {
    async lastOfEach(filter) {
      const answers = await askPatiently(direct, { multi_last: [filter] }, (answer) => statusOf(answer) > 0);
      const end = answers.pop();
      if (end !== undefined && statusOf(end) !== BATCH_END) fromReplica(end);
      return answers.flatMap((answer) => fromReplica(answer) ?? []);
    },
    next: (subject, seq, from) => one({ seq, next_by_subj: subject }, from),
    at: (seq, from) => one({ seq }, from),
    close() {
      requests.clear();
      inbox.close();
    },
  };
}

const unreadable = (reason: string, cause?: unknown): TaskledgerError =>
  new TaskledgerError('log_unavailable', { reason: `reading: ${reason}` }, { cause });

/** 0 for a message with content. */
const statusOf = (answer: Msg): number => answer.headers?.code ?? 0;
const isNoResponders = (answer: Msg): boolean => answer.data.length === 0 && statusOf(answer) === 503;

function fromReplica(answer: Msg): Stored | undefined {
  const { headers } = answer;
  if (headers === undefined) throw unreadable('an answer without headers');
  if (headers.code === 404) return undefined;
  if (headers.code !== 0) throw unreadable(`${headers.code} ${headers.description}`);
  return {
    seq: Number(headers.get('Nats-Sequence')),
    storedAt: Date.parse(headers.get('Nats-Time-Stamp')),
    subject: headers.get('Nats-Subject'),
    text: textOf(answer.data),
  };
}

interface LeaderAnswer {
  readonly message?: {
    readonly seq: number;
    readonly subject: string;
    readonly time: string;
    readonly data?: string;
  };
  readonly error?: { readonly code: number; readonly description: string };
}

function fromLeader(answer: Msg): Stored | undefined {
  const { message, error } = JSON.parse(textOf(answer.data)) as LeaderAnswer;
  if (error !== undefined && error.code !== 404) throw unreadable(error.description);
  if (message === undefined) return undefined;
  const { seq, subject, time, data = '' } = message;
  return { seq, subject, storedAt: Date.parse(time), text: Buffer.from(data, 'base64').toString() };
}

const textOf = (data: Uint8Array): string =>
  Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString();
