import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { NotRetryable, type TypedHandler } from '../../index.ts';
import { produce } from '../produce.ts';
import { compress, preview, searchIndex, wordCount } from './definitions.ts';
import { SOURCE_FILE } from './documents.ts';
import { greyPng } from './png.ts';

const zipped = promisify(gzip);
const MOST_FREQUENT = 5;
/** Pixels of the preview that a letter takes, in both directions. */
const LETTER_PX = 4;
const SPACE = 32;

/** The four steps over documents in `mediaDir`. */
export function fileHandlers(mediaDir: string): Readonly<Record<string, TypedHandler>> {
  const read = (document: string, signal: AbortSignal) =>
    readSource(join(mediaDir, document, SOURCE_FILE), signal);
  return {
    compress: compress.handle(async (context) => {
      const { document, level } = context.payload;
      const content = await read(document, context.signal);
      const small = await zipped(content, { level });
      const file = await produce(mediaDir, `${document}/source.txt.gz`, context, small);
      const sha256 = createHash('sha256').update(content).digest('hex');
      return { file, bytes: content.length, compressedBytes: small.length, sha256 };
    }),

    'word-count': wordCount.handle(async ({ payload, signal }) => {
      const text = (await read(payload.document, signal)).toString('utf8');
      const words = wordsOf(text);
      const counts = new Map<string, number>();
      for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
      const top = [...counts].sort(([, a], [, b]) => b - a).slice(0, MOST_FREQUENT);
      return {
        lines: text.split('\n').length - 1,
        words: words.length,
        distinct: counts.size,
        top: top.map(([word, count]) => ({ word, count })),
      };
    }),

    'search-index': searchIndex.handle(async (context) => {
      const { document } = context.payload;
      const lines = (await read(document, context.signal)).toString('utf8').split('\n');
      const linesOf = new Map<string, Set<number>>();
      lines.forEach((line, number) => {
        for (const word of wordsOf(line)) linesOf.set(word, (linesOf.get(word) ?? new Set()).add(number));
      });
      const index = [...linesOf]
        .sort(([a], [b]) => (a < b ? -1 : 1))
        .map(([word, found]) => [word, [...found]]);
      const content = JSON.stringify(Object.fromEntries(index));
      const file = await produce(mediaDir, `${document}/index.json`, context, content);
      return { file, bytes: Buffer.byteLength(content), terms: linesOf.size };
    }),

    preview: preview.handle(async (context) => {
      const { document, width } = context.payload;
      const lines = (await read(document, context.signal)).toString('latin1').split('\n');
      const height = Math.min(width, lines.length * LETTER_PX);
      const pixels = Uint8Array.from({ length: width * height }, (_, at) =>
        greyOf(lines, at % width, Math.floor(at / width)),
      );
      const png = await greyPng(pixels, width);
      const file = await produce(mediaDir, `${document}/preview.png`, context, png);
      return { file, bytes: png.length, width, height };
    }),
  };
}

/** The page from far away: a letter is a dark spot, with a light gap to the next line. */
function greyOf(lines: readonly string[], x: number, y: number): number {
  const code = lines[Math.floor(y / LETTER_PX)]?.charCodeAt(Math.floor(x / LETTER_PX)) ?? Number.NaN;
  return y % LETTER_PX === LETTER_PX - 1 || Number.isNaN(code) || code === SPACE ? 255 : code;
}

const wordsOf = (text: string): string[] => text.match(/\p{L}+/gu) ?? [];

async function readSource(path: string, signal: AbortSignal): Promise<Buffer> {
  let content: Buffer;
  try {
    content = await readFile(path, { signal });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause;
    throw new NotRetryable('The document does not exist', { code: 'document_missing', cause });
  }
  if (content.length === 0) throw new NotRetryable('The document is empty', { code: 'document_empty' });
  return content;
}
