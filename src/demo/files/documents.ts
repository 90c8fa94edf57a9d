import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

export const SOURCE_FILE = 'source.txt';

const SYLLABLES = [
  'ba',
  'den',
  'ki',
  'lor',
  'mi',
  'na',
  'pel',
  'qua',
  'ro',
  'sti',
  'tu',
  'vek',
  'wan',
  'xi',
  'zo',
];
const WORDS_IN_LINE = 12;

/** Writes a text of invented words: the same `seed` gives the same text. */
export async function writeDocument(
  dir: string,
  { seed, lines }: { seed: number; lines: number },
): Promise<void> {
  await pipeline(Readable.from(textOf(seed, lines)), createWriteStream(join(dir, SOURCE_FILE)));
}

function* textOf(seed: number, lines: number): Generator<string> {
  const roll = randomFrom(seed);
  for (let line = 0; line < lines; line++) {
    const words = Array.from({ length: WORDS_IN_LINE }, () => word(roll));
    yield `${words.join(' ')}\n`;
  }
}

/** Low rolls are frequent, as in a language: a few words make up most of a text. */
function word(roll: () => number): string {
  const length = 1 + Math.floor(3 * roll() ** 2);
  return Array.from({ length }, () => SYLLABLES[Math.floor(SYLLABLES.length * roll() ** 2)] ?? '').join('');
}

/** mulberry32: numbers in [0, 1) that only depend on the seed. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
