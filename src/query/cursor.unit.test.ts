import { expect, test } from 'vitest';
import { cursorAt, seqOfCursor } from './cursor.ts';

test.each([1, 42, Number.MAX_SAFE_INTEGER, -7])('the cursor at %i leads back to it', (seq) => {
  expect(seqOfCursor('t', cursorAt('t', seq))).toBe(seq);
});

test('no cursor is the beginning', () => {
  expect(seqOfCursor('t', undefined)).toBeUndefined();
});

test.each([
  ['nothing', ''],
  ['of another list', cursorAt('e', 5)],
  ['of place 0', Buffer.from('t0').toString('base64url')],
  ['beyond what a number can say', Buffer.from('t99999999999999999').toString('base64url')],
  ['with something added', `${cursorAt('t', 5)}A`],
  ['in another alphabet', `${cursorAt('t', 5)}=`],
  ['with SQL in it', Buffer.from("t1' or true").toString('base64url')],
])('a cursor %s is refused', (_, cursor) => {
  expect(() => seqOfCursor('t', cursor)).toThrow(expect.objectContaining({ code: 'cursor_invalid' }));
});
