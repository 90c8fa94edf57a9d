import { readFile, rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import { TaskledgerError } from '../domain/errors.ts';

/** What a backup folder holds. It is written last: a folder without it is an unfinished backup. */
export const ManifestSchema = z.object({
  format: z.literal(1),
  takenAt: z.iso.datetime(),
  prefix: z.string(),
  /** In the order in which they were taken. */
  streams: z.array(
    z.object({
      name: z.string(),
      file: z.string(),
      bytes: z.int(),
      sha256: z.string(),
      messages: z.int(),
      firstSeq: z.int(),
      lastSeq: z.int(),
      /** Of HISTORY: the TASKS sequence of its last message. */
      sourceSeq: z.int().optional(),
      config: z.looseObject({ name: z.string() }),
      state: z.looseObject({}),
    }),
  ),
});
export type Manifest = z.infer<typeof ManifestSchema>;
export type BackedUpStream = Manifest['streams'][number];

const FILE = 'manifest.json';

export async function writeManifest(dir: string, manifest: Manifest): Promise<void> {
  const path = join(dir, FILE);
  await writeFile(`${path}.part`, `${JSON.stringify(manifest, null, 2)}\n`);
  await rename(`${path}.part`, path);
}

/** Throws `backup_unreadable`. */
export async function readManifest(dir: string): Promise<Manifest> {
  try {
    return ManifestSchema.parse(JSON.parse(await readFile(join(dir, FILE), 'utf8')));
  } catch (cause) {
    throw new TaskledgerError('backup_unreadable', { dir, reason: (cause as Error).message }, { cause });
  }
}
