import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { JetStreamApiError, type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { Names } from '../log/subjects.ts';
import type { Config } from '../platform/config.ts';
import { type BackedUpStream, type Manifest, readManifest } from './manifest.ts';
import { type SnapshotHead, writeSnapshot } from './snapshot.ts';

export interface RestoreParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly config: Pick<Config, 'replicas'>;
  readonly dir: string;
  readonly onStream?: (stream: BackedUpStream) => void;
}

/**
 * Makes the streams of a backup, with the sequences they had, on servers that have none of them. Nothing of the
 * installation may run meanwhile. The files are checked before anything is made. The server gives a restored TASKS a new
 * time of creation: read models that reflect what came after the backup do not take it for the same log.
 */
export async function restore(parts: RestoreParts): Promise<Manifest> {
  const { nc, names, dir, config, onStream } = parts;
  const manifest = await readManifest(dir);
  if (manifest.prefix !== names.prefix)
    throw new TaskledgerError('backup_unreadable', {
      dir,
      reason: `it is of an installation with the prefix "${manifest.prefix}", not "${names.prefix}"`,
    });
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  for (const stream of manifest.streams) {
    if (await exists(jsm, stream.name))
      throw new TaskledgerError('restore_not_empty', { stream: stream.name });
    await checkFile(dir, stream);
  }
  for (const stream of inRestoreOrder(manifest.streams, names)) {
    const head = {
      config: { ...stream.config, ...drawingOn(stream), num_replicas: config.replicas },
      state: stream.state,
    } as unknown as SnapshotHead;
    await writeSnapshot(nc, head, createReadStream(join(dir, stream.file)));
    onStream?.(stream);
  }
  return manifest;
}

/** A restored stream does not look where it had come to with its source: it would draw everything a second time. */
function drawingOn({ config, sourceSeq }: BackedUpStream): object {
  const { sources } = config as { sources?: readonly object[] };
  if (sources === undefined || sourceSeq === undefined) return {};
  return { sources: sources.map((source) => ({ ...source, opt_start_seq: sourceSeq + 1 })) };
}

/** TASKS before HISTORY, which looks for the rest of it at once. */
function inRestoreOrder(streams: readonly BackedUpStream[], names: Names): readonly BackedUpStream[] {
  const isTasks = ({ name }: BackedUpStream): boolean => name === names.streams.tasks;
  return [...streams.filter(isTasks), ...streams.filter((stream) => !isTasks(stream))];
}

async function checkFile(dir: string, { file, sha256 }: BackedUpStream): Promise<void> {
  const hash = createHash('sha256');
  try {
    for await (const chunk of createReadStream(join(dir, file))) hash.update(chunk as Buffer);
  } catch (cause) {
    throw new TaskledgerError('backup_unreadable', { dir, reason: (cause as Error).message }, { cause });
  }
  if (hash.digest('hex') !== sha256)
    throw new TaskledgerError('backup_unreadable', { dir, reason: `${file} is not what was written` });
}

const STREAM_NOT_FOUND = 10_059;

async function exists(jsm: JetStreamManager, stream: string): Promise<boolean> {
  try {
    await jsm.streams.info(stream);
    return true;
  } catch (error) {
    if (error instanceof JetStreamApiError && error.code === STREAM_NOT_FOUND) return false;
    throw error;
  }
}
