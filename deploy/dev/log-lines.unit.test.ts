import { expect, test } from 'vitest';
import { linePrefixer, readable } from './log-lines.ts';

test('log lines of the project become readable, and other lines stay as they are', () => {
  const line = JSON.stringify({
    level: 40,
    time: '2026-11-29T20:15:00.000Z',
    msg: 'slow',
    tenant: 'demo',
    ms: 12,
  });
  expect(readable(line)).toBe('20:15:00 WARN  slow tenant=demo ms=12');
  expect(readable('{"a":1}')).toBe('{"a":1}');
  expect(readable('{not json')).toBe('{not json');
});

test('a prefix is as wide as the longest name, and coloured only where colours are seen', () => {
  const plain = linePrefixer({ name: 'api', width: 6, index: 0, colour: false });
  expect(plain('ready')).toBe('api    │ ready');
  const coloured = linePrefixer({ name: 'api', width: 6, index: 0, colour: true });
  expect(coloured('ready')).toBe('\x1b[36mapi   \x1b[0m │ ready');
});
