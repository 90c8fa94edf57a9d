import type { Msg } from '@nats-io/transport-node';
import { REFUSALS } from './refusal.ts';

/** A stream's answer to a message. */
export type PubAck =
  | { readonly kind: 'stored'; readonly stream: string; readonly seq: number }
  | {
      readonly kind: 'refused';
      /** JetStream's own code. */
      readonly code: number;
      readonly description: string;
      /** The server cannot now; later it may. */
      readonly passing: boolean;
    }
  /** No stream listens on the subject now: none was made, or its leader is being elected. */
  | { readonly kind: 'no_responders'; readonly description: string };

/** Statuses: unavailable, too many requests. */
const PASSING_STATUSES = new Set([503, 429]);
/** Those of other statuses that pass too: not assigned, not the leader, no memory, a Raft error, no storage. */
const PASSING_CODES = new Set<number>([REFUSALS.key_in_flight, 10_007, 10_009, 10_028, 10_041, 10_047]);

interface AckBody {
  readonly stream?: string;
  readonly seq?: number;
  readonly error?: { readonly err_code?: number; readonly code?: number; readonly description?: string };
}

export function parsePubAck(message: Msg): PubAck {
  const { data } = message;
  if (data.length === 0) return { kind: 'no_responders', description: 'no responders' };
  const text = Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('latin1');
  let body: AckBody;
  try {
    body = JSON.parse(text) as AckBody;
  } catch {
    return {
      kind: 'refused',
      code: 0,
      description: `not an acknowledgement: ${text.slice(0, 100)}`,
      passing: false,
    };
  }
  if (body.error !== undefined) {
    const { err_code = 0, code: status = 0, description = 'no reason given' } = body.error;
    const passing = PASSING_STATUSES.has(status) || PASSING_CODES.has(err_code);
    return { kind: 'refused', code: err_code, description, passing };
  }
  return { kind: 'stored', stream: body.stream ?? '', seq: body.seq ?? 0 };
}

/** The N of `wrong last sequence: N`, 0 when the server names none. */
export const lastSequenceIn = (description: string): number =>
  Number(/wrong last sequence: (\d+)/.exec(description)?.[1] ?? 0);
