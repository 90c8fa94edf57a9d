import { expect, test } from 'vitest';
import { arrayLiteral, copyLine, jsonText, storableText } from './sql-text.ts';

test('an array literal quotes texts and leaves numbers, booleans and nulls bare', () => {
  expect(arrayLiteral(['a', null, 'b "c" \\d', '', 'NULL', '{,}'], (text) => text)).toBe(
    '{"a",NULL,"b \\"c\\" \\\\d","","NULL","{,}"}',
  );
  expect(arrayLiteral([1, null, true], (cell) => cell)).toBe('{1,NULL,true}');
  expect(arrayLiteral([], () => null)).toBe('{}');
});

test('a line for COPY escapes what separates cells and lines', () => {
  expect(copyLine(['a\tb', null, '\\N', 'x\r\ny', 5, true])).toBe('a\\tb\t\\N\t\\\\N\tx\\r\\ny\t5\ttrue\n');
});

test('text loses only what Postgres cannot store', () => {
  expect(storableText('a\0b')).toBe('a\uFFFDb');
  expect(storableText('tab\tok')).toBe('tab\tok');
});

test('JSON text never is absent', () => {
  expect(jsonText(undefined)).toBe('null');
  expect(jsonText('nul\0')).toBe('"nul\\u0000"');
});
