import { z } from 'zod';
import { defineTask } from '../../index.ts';

/** A document is a folder under the media folder that holds `source.txt`. */
export const DocumentSchema = z.string().regex(/^[a-z0-9][a-z0-9-]{0,62}$/);
const payload = z.strictObject({ document: DocumentSchema });
/** Path below the media folder. */
const file = z.string();
const count = z.int().min(0);

export const compress = defineTask({
  type: 'compress',
  payload: z.strictObject({ document: DocumentSchema, level: z.int().min(1).max(9).default(6) }),
  result: z.strictObject({ file, bytes: count, compressedBytes: count, sha256: z.string() }),
});

export const wordCount = defineTask({
  type: 'word-count',
  payload,
  result: z.strictObject({
    lines: count,
    words: count,
    distinct: count,
    /** The most frequent first. */
    top: z.array(z.strictObject({ word: z.string(), count })).max(10),
  }),
});

export const searchIndex = defineTask({
  type: 'search-index',
  payload,
  result: z.strictObject({ file, bytes: count, terms: count }),
});

export const preview = defineTask({
  type: 'preview',
  payload: z.strictObject({ document: DocumentSchema, width: z.int().min(16).max(2_048).default(320) }),
  result: z.strictObject({ file, bytes: count, width: count, height: count }),
});
