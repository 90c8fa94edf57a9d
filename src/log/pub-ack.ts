import type { Msg } from '@nats-io/transport-node';

/** A stream's answer to a message. */
export type PubAck =
  | { readonly kind: 'stored'; readonly stream: string; readonly seq: number }
  | { readonly kind: 'refused'; readonly code: number; readonly description: string }
  /** No stream listens on the subject now: none was made, or its leader is being elected. */
  | { readonly kind: 'no_responders'; readonly code: 503; readonly description: string };

interface AckBody {
  readonly stream?: string;
  readonly seq?: number;
  readonly error?: { readonly err_code?: number; readonly code?: number; readonly description?: string };
}

export function parsePubAck(message: Msg): PubAck {
  const { data } = message;
  if (data.length === 0) return { kind: 'no_responders', code: 503, description: 'no responders' };
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('latin1');
  let body: AckBody;
  try {
    body = JSON.parse(text) as AckBody;
  } catch {
    return { kind: 'refused', code: 0, description: `not an acknowledgement: ${text.slice(0, 100)}` };
  }
  if (body.error !== undefined) {
    const { err_code, code, description } = body.error;
    return { kind: 'refused', code: err_code ?? code ?? 0, description: description ?? 'no reason given' };
  }
  return { kind: 'stored', stream: body.stream ?? '', seq: body.seq ?? 0 };
}

/** The N of `wrong last sequence: N`, 0 when the server names none. */
export const lastSequenceIn = (description: string): number =>
  Number(/wrong last sequence: (\d+)/.exec(description)?.[1] ?? 0);
