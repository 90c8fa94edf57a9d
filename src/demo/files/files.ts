import { truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { type Demo, FIRST_ITEM, type Item } from '../demo.ts';
import { compress, preview, searchIndex, wordCount } from './definitions.ts';
import { SOURCE_FILE, writeDocument } from './documents.ts';
import { fileHandlers } from './handlers.ts';

/** Every so many documents one arrives empty, so that the dead-letter queues have something to show. */
const EMPTY_EVERY = 40;

export const filesDemo: Demo = {
  name: 'files',
  text: `Demo: documents. Every second a text is written, which is compressed, counted, indexed and drawn as a preview;
  one in ${EMPTY_EVERY} is empty and ends in the dead-letter queues.`,
  types: [compress.type, wordCount.type, searchIndex.type, preview.type],
  sample: wordCount.submission({ document: FIRST_ITEM }),
  everyMs: 1_000,
  keepItems: 200,
  handlers: fileHandlers,
  makeItem,
};

async function makeItem({ id, n, dir }: Item) {
  await writeDocument(dir, { seed: n, lines: 500 + (n % 10) * 500 });
  if (n % EMPTY_EVERY === EMPTY_EVERY - 1) await truncate(join(dir, SOURCE_FILE), 0);
  return tasksOf(id);
}

/** The four tasks of a document. A repeat submits none of them anew. */
export const tasksOf = (document: string) => [
  wordCount.submission({ document }, { idempotencyKey: `${document}:word-count`, priority: 1 }),
  preview.submission({ document }, { idempotencyKey: `${document}:preview` }),
  searchIndex.submission({ document }, { idempotencyKey: `${document}:search-index`, priority: 3 }),
  compress.submission({ document }, { idempotencyKey: `${document}:compress`, priority: 3 }),
];
