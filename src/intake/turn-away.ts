import type { TaskledgerError } from '../domain/errors.ts';
import {
  ACTOR,
  type Addressed,
  type Letter,
  open,
  type Receipt,
  type ReceiptParts,
  receive,
  refusal,
} from './receipt.ts';

/**
 * Refuses a message for want of room, although nothing is wrong with it. REJECTED stands under the message's own id and
 * not under its key's, so that the same key may be sent again. A message that was taken before is answered as ever.
 * Undefined when it cannot be known whether it was: it must come again.
 */
export async function turnAway(
  message: Letter,
  address: Addressed,
  error: TaskledgerError,
  parts: ReceiptParts,
): Promise<Receipt | undefined> {
  const letter = open(message, address);
  const { fallbackId: id, taskId, trace } = letter;
  const known = await parts.intake.beginning(address.tenant, taskId);
  if (known !== undefined && known.event.kind !== 'REJECTED') return receive(message, address, parts);
  // What a throttle or debounce key makes stands under other ids.
  if (message.redelivered && isJoined(letter.input)) return undefined;
  const text = `${error.message}. Too many of its messages wait already: send this one again later; its key may be used again`;
  const reasons = [{ code: error.code, message: text }];
  const { seq } = await parts.intake.reject({ ...address, taskId: id, reasons, actor: ACTOR, trace });
  return refusal(letter, { id, seq, reasons });
}

const isJoined = (input: unknown): boolean =>
  typeof input === 'object' && input !== null && ('throttle' in input || 'debounce' in input);
