import type { JetStreamManager, StreamInfo } from '@nats-io/jetstream';
import { isRefusal } from '../log/refusal.ts';

/** What the servers have where a stream is to be restored. */
export type Presence =
  | { readonly kind: 'absent' }
  | { readonly kind: 'empty' }
  | { readonly kind: 'holding'; readonly what: string };

/** Keys of a bucket are named when there are no more. */
const MOST_NAMED = 5;

export async function presenceOf(jsm: JetStreamManager, stream: string): Promise<Presence> {
  const info = await infoOf(jsm, stream);
  if (info === undefined) return { kind: 'absent' };
  const { messages, num_subjects: subjects = 0, last_ts: lastAt } = info.state;
  if (messages === 0) return { kind: 'empty' };
  if (!stream.startsWith('KV_') || subjects > MOST_NAMED)
    return { kind: 'holding', what: `${messages} messages, the last of ${lastAt}` };
  const { state } = await jsm.streams.info(stream, { subjects_filter: '>' });
  // A subject of a bucket is two tokens and the key.
  const keys = Object.keys(state.subjects ?? {}).map((subject) => subject.split('.').slice(2).join('.'));
  return { kind: 'holding', what: `${keys.join(', ')}; the last of ${lastAt}` };
}

/** Undefined when there is no such stream. */
export async function infoOf(jsm: JetStreamManager, stream: string): Promise<StreamInfo | undefined> {
  try {
    return await jsm.streams.info(stream);
  } catch (error) {
    if (isRefusal(error, 'stream_not_found')) return undefined;
    throw error;
  }
}
