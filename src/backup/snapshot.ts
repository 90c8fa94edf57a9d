import { setTimeout as delay } from 'node:timers/promises';
import type { StreamConfig, StreamState } from '@nats-io/jetstream';
import { createInbox, type Msg, type NatsConnection, RequestError } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import { REFUSALS } from '../log/refusal.ts';

/**
 * The server's own snapshots of a stream: its messages with their sequences, times and headers, and its consumers with
 * what they have not acked. The client has no calls for them, so the API is spoken here.
 */
export interface SnapshotHead {
  readonly config: StreamConfig & { readonly name: string };
  readonly state: StreamState;
}

const ANSWER_MS = 30_000;
/** Silence after which a transfer is given up. */
const SILENCE_MS = 60_000;
const CHUNK_BYTES = 128 * 1_024;
/** Chunks on their way to the server at a time. */
const WINDOW = 16;
const HEARD_WITHIN_MS = 10_000;
const AGAIN_AFTER_MS = 50;

interface ApiAnswer {
  readonly error?: { readonly code: number; readonly err_code: number; readonly description: string };
}

async function ask<T>(nc: NatsConnection, subject: string, body: object): Promise<T & ApiAnswer> {
  const answer = await nc.request(subject, JSON.stringify(body), { timeout: ANSWER_MS });
  return answer.json<T & ApiAnswer>();
}

/** Hands over a snapshot chunk by chunk; undefined when there is no such stream. `write` sets the pace. */
export async function readSnapshot(
  nc: NatsConnection,
  stream: string,
  write: (chunk: Uint8Array) => Promise<void>,
): Promise<SnapshotHead | undefined> {
  const inbox = createInbox();
  const chunks = nc.subscribe(inbox);
  try {
    const head = await ask<SnapshotHead>(nc, `$JS.API.STREAM.SNAPSHOT.${stream}`, {
      deliver_subject: inbox,
      chunk_size: CHUNK_BYTES,
      jsck: false,
    });
    if (head.error?.err_code === REFUSALS.stream_not_found) return undefined;
    if (head.error !== undefined) throw failed(stream, head.error.description);
    for await (const chunk of withinSilence(chunks, stream)) {
      if (chunk.data.length === 0) {
        const code = chunk.headers?.code ?? 0;
        if (code >= 400) throw failed(stream, `${code} ${chunk.headers?.description ?? ''}`);
        return head;
      }
      await write(chunk.data);
      // The server sends only so much ahead of the answers.
      chunk.respond();
    }
    throw failed(stream, 'the connection was closed');
  } finally {
    chunks.unsubscribe();
  }
}

/** Makes a stream from a snapshot. It must not exist. */
export async function writeSnapshot(
  nc: NatsConnection,
  { config, state }: SnapshotHead,
  chunks: AsyncIterable<Uint8Array>,
): Promise<void> {
  const stream = config.name;
  const head = await ask<{ deliver_subject: string }>(nc, `$JS.API.STREAM.RESTORE.${stream}`, {
    config,
    state,
  });
  if (head.error !== undefined) throw failed(stream, head.error.description);
  const send = async (data: Uint8Array): Promise<ApiAnswer> => {
    const answer = await nc.request(head.deliver_subject, data, { timeout: SILENCE_MS });
    return answer.data.length === 0 ? {} : answer.json<ApiAnswer>();
  };
  const refuse = ({ error }: ApiAnswer): void => {
    if (error !== undefined) throw failed(stream, error.description);
  };
  const onTheirWay: Promise<void>[] = [];
  let heard = false;
  for await (const chunk of chunks) {
    for (let from = 0; from < chunk.length; from += CHUNK_BYTES) {
      const piece = chunk.subarray(from, from + CHUNK_BYTES);
      if (!heard) {
        await onceHeard(() => send(piece).then(refuse));
        heard = true;
        continue;
      }
      const sent = send(piece).then(refuse);
      // Those behind one that fails are not waited for any more.
      sent.catch(() => undefined);
      onTheirWay.push(sent);
      if (onTheirWay.length >= WINDOW) await onTheirWay.shift();
    }
  }
  await Promise.all(onTheirWay);
  refuse(await send(new Uint8Array()));
}

/** In a cluster the server that answered may not be heard of yet where we are connected: what nobody has heard is sent again. */
async function onceHeard(send: () => Promise<void>): Promise<void> {
  for (const deadline = performance.now() + HEARD_WITHIN_MS; ; await delay(AGAIN_AFTER_MS)) {
    try {
      return await send();
    } catch (error) {
      const unheard = error instanceof RequestError && error.isNoResponders();
      if (!unheard || performance.now() > deadline) throw error;
    }
  }
}

async function* withinSilence(chunks: AsyncIterable<Msg>, stream: string): AsyncIterable<Msg> {
  const iterator = chunks[Symbol.asyncIterator]();
  for (;;) {
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(failed(stream, 'the server has gone silent')), SILENCE_MS);
    });
    const { done, value } = await Promise.race([iterator.next(), silence]).finally(() => clearTimeout(timer));
    if (done === true) return;
    yield value;
  }
}

const failed = (stream: string, reason: string): TaskledgerError =>
  new TaskledgerError('transfer_failed', { stream, reason });
