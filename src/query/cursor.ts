import { TaskledgerError } from '../domain/errors.ts';

/**
 * An opaque place in a list that is ordered by one sequence: base64url of a letter for the list and the sequence of the
 * last row shown. Rows that come in meanwhile cannot shift it.
 */
export type CursorKind = 't' | 'e' | 'd' | 'g';

export const cursorAt = (kind: CursorKind, seq: number): string =>
  Buffer.from(`${kind}${seq}`).toString('base64url');

/** The sequence in a cursor, undefined for none. Throws `cursor_invalid` for anything this API did not issue for this list. */
export function seqOfCursor(kind: CursorKind, cursor: string | undefined): number | undefined {
  if (cursor === undefined) return undefined;
  const text = Buffer.from(cursor, 'base64url').toString('latin1');
  const seq = Number(text.slice(1));
  if (
    !CURSOR_TEXT.test(text) ||
    text[0] !== kind ||
    !Number.isSafeInteger(seq) ||
    cursorAt(kind, seq) !== cursor
  )
    throw new TaskledgerError('cursor_invalid');
  return seq;
}

/** A task whose beginning was lost has a negative place: after all others. */
const CURSOR_TEXT = /^[tedg]-?[1-9]\d{0,15}$/;
