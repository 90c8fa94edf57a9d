import { decodeEvent } from '../domain/codec.ts';
import type { Recorded, TaskEvent } from '../domain/events.ts';
import { msOfNanos } from '../log/stored-at.ts';

/** Where a delivery stands, as its ack subject says. */
export interface DeliveryInfo {
  /** Sequence in TASKS: of the QUEUED event. */
  readonly seq: number;
  /** 1 for the first delivery. A hint only: the server may miscount after a crash. */
  readonly deliveryCount: number;
  /** When the server stored the event, in ms since 1970. */
  readonly storedAt: number;
}

/** A work item as it came: the QUEUED event and the subject that renews or ends its lease. */
export interface Delivery extends DeliveryInfo {
  readonly type: string;
  readonly ackSubject: string;
  readonly data: Uint8Array;
  /** Monotonic ms: when it came out of the socket. */
  readonly receivedAt: number;
}

/**
 * Reads `$JS.ACK.<stream>.<consumer>.<delivered>.<seq>.<consumerSeq>.<ns>.<pending>`, or the longer form with domain
 * and account before the stream and a token at the end. Undefined for anything else.
 */
export function parseAckSubject(ackSubject: string): DeliveryInfo | undefined {
  const tokens = ackSubject.split('.');
  if (tokens[0] !== '$JS' || tokens[1] !== 'ACK') return undefined;
  const first = tokens.length === 9 ? 4 : tokens.length >= 11 ? 6 : undefined;
  if (first === undefined) return undefined;
  const deliveryCount = Number(tokens[first]);
  const seq = Number(tokens[first + 1]);
  const storedAt = msOfNanos(tokens[first + 3]);
  return Number.isSafeInteger(seq) && seq > 0 ? { seq, deliveryCount, storedAt } : undefined;
}

/** The event of a delivery. Throws UnreadableEvent. */
export const recordedOf = ({ data, seq, storedAt }: Delivery): Recorded<TaskEvent> => ({
  seq,
  storedAt,
  event: decodeEvent(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('utf8')),
});

export const ACK = '+ACK';
/** Hands a delivery back: at once, or after a delay. */
export const nak = (delayMs = 0): string =>
  delayMs <= 0 ? '-NAK' : `-NAK ${JSON.stringify({ delay: Math.round(delayMs) * 1_000_000 })}`;
/** Never deliver it again. */
export const TERM = '+TERM';
export const IN_PROGRESS = '+WPI';
