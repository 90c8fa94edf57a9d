import type { TaskError } from './events.ts';

/**
 * What makes errors the same: their name, code and message with everything taken out that differs from one occurrence to
 * the next. `shape` is that message for people; `fingerprint` names the group in addresses and keys.
 */
export interface ErrorShape {
  readonly fingerprint: string;
  readonly shape: string;
}

/** A message is compared by its beginning: what follows is usually a dump. */
const COMPARED = 600;

export function errorShape({
  name,
  code,
  message,
}: Pick<TaskError, 'name' | 'code' | 'message'>): ErrorShape {
  const shape = shapeOf(message);
  return { fingerprint: hash(`${name}\n${code === undefined ? '' : shapeOf(code)}\n${shape}`), shape };
}

/** In this order: what is found first may contain what is looked for later (an address has a port, a path has numbers). */
const VARIABLE: readonly (readonly [pattern: RegExp, placeholder: string])[] = [
  // What a program quotes is nearly always a value. An apostrophe inside a word opens nothing.
  [
    /"(?:[^"\\\n]|\\.)*"|`(?:[^`\\\n]|\\.)*`|(?<![\p{L}\p{N}])'(?:[^'\\\n]|\\.)*'(?![\p{L}\p{N}])|[“«‘][^”»’\n]*[”»’]/gu,
    '<value>',
  ],
  [/\b[a-z][a-z0-9+.-]*:\/\/[^\s<>"'`)\]},;]+/gi, '<url>'],
  [/[\w.+-]+@[\w-]+(?:\.[\w-]+)+/g, '<email>'],
  [/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '<id>'],
  [/\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?)?/g, '<time>'],
  [/\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b/g, '<time>'],
  // Windows and Unix paths; with a position behind them, as stack frames have it.
  [/(?<![\w<])[A-Za-z]:\\[^\s"'<>|:]+(?::\d+)*/g, '<path>'],
  [/(?<![\w<>])(?:~|\.{1,2})?(?:\/[^\s"'`<>:,;()[\]{}|]+)+\/?(?::\d+)*/g, '<path>'],
  [/(?<![\w.])[\w-]+(?:\.[\w-]+)*\.(?:[cm]?[jt]sx?|py|go|rs|java|rb|php|cs|cpp|c|h)(?::\d+)+/g, '<path>'],
  [/\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b/g, '<address>'],
  [/\[[0-9a-f.]*:[0-9a-f:.]*\](?::\d+)?/gi, '<address>'],
  [/(?<![\w:])(?=[a-f:]*\d)(?:[0-9a-f]{0,4}:){2,8}[0-9a-f]{0,5}(?![\w:])/gi, '<address>'],
  [/\b(?:localhost|[a-z0-9-]+(?:\.[a-z0-9-]+)+):\d+\b/gi, '<address>'],
  [/\b0x[0-9a-f]+\b/gi, '<id>'],
  // Ids of databases, clouds and traces: long, and of letters and digits mixed.
  [/\b(?=[A-Za-z]*\d)(?=\d*[A-Za-z])[A-Za-z0-9]{16,}\b|\b(?=[a-f]*\d)(?=\d*[a-f])[0-9a-f]{7,}\b/g, '<id>'],
  [/\b[A-Za-z]+[_-](?=[A-Za-z]*\d)[A-Za-z0-9]{6,}\b/g, '<id>'],
  // A number with its sign, fraction and unit; thousands may be parted.
  [
    /(?<![\p{L}\p{N}_<])[-+]?\d+(?:[.,_]\d+)*(?:e[-+]?\d+)?(?:\s?(?:%|[munµ]?s|min|h|[KMGT]?i?B|bytes?)(?![\p{L}\p{N}]))?/giu,
    '<n>',
  ],
  // Digits at the end of a name: shard-12, worker7, line42.
  [/(?<=\p{L}[_#-]?)\d+(?![\p{L}\p{N}])/gu, '<n>'],
];

export function shapeOf(message: string): string {
  let shape = message.slice(0, 4 * COMPARED);
  for (const [pattern, placeholder] of VARIABLE) shape = shape.replace(pattern, placeholder);
  return shape
    .replace(/<n>(?:\s*[,x×:/]\s*<n>)+/g, '<n>')
    .replace(/\s+/g, ' ')
    .trim()
    .slice(0, COMPARED);
}

/** 64 bits of FNV-1a over UTF-16 units, as 16 hex digits: names groups, keeps no secrets. */
function hash(text: string): string {
  let value = 0xcbf29ce484222325n;
  for (let i = 0; i < text.length; i++) {
    value ^= BigInt(text.charCodeAt(i));
    value = BigInt.asUintN(64, value * 0x100000001b3n);
  }
  return value.toString(16).padStart(16, '0');
}
