import { createHash } from 'node:crypto';
import { mkdir, open, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import { openHistory } from '../log/history.ts';
import type { Names } from '../log/subjects.ts';
import { type BackedUpStream, type Manifest, writeManifest } from './manifest.ts';
import { readSnapshot } from './snapshot.ts';

export interface BackupParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly dir: string;
  /** Ms since 1970. */
  readonly now: number;
  readonly onStream?: (stream: BackedUpStream) => void;
}

/**
 * The streams of an installation, in the order that makes a backup under load consistent. A submission is in SUBMISSIONS
 * until it is in TASKS: taken first, it is in both at worst, and intake recognises it. HISTORY draws from TASKS: taken
 * first, it lacks at worst what it then draws again; ahead of TASKS, it would pass over events of the same sequences.
 * Timers are hints, and settings change rarely. Leaders, workers and what is left of rates are facts of the moment: they are not kept.
 */
export function streamsInOrder({ streams, buckets }: Names): readonly string[] {
  const { leaders: _leaders, workers: _workers, rates: _rates, ...lasting } = buckets;
  return [
    streams.submissions,
    streams.history,
    streams.tasks,
    streams.timers,
    ...Object.values(lasting).map((bucket) => `KV_${bucket}`),
  ];
}

/** Writes a backup into a folder that is empty or does not exist. The installation may be at work meanwhile. */
export async function backUp(parts: BackupParts): Promise<Manifest> {
  const { nc, names, dir, now, onStream } = parts;
  await mkdir(dir, { recursive: true });
  if ((await readdir(dir)).length > 0) throw new TaskledgerError('backup_folder_not_empty', { dir });
  const streams: BackedUpStream[] = [];
  for (const name of streamsInOrder(names)) {
    const stream = await backUpStream(nc, name, dir);
    if (stream === undefined) continue;
    const drawsFrom = name === names.streams.history ? await sourceSeqAt(parts, stream.lastSeq) : {};
    streams.push({ ...stream, ...drawsFrom });
    onStream?.(stream);
  }
  if (streams.length === 0) throw new TaskledgerError('backup_empty', { prefix: names.prefix });
  const manifest: Manifest = {
    format: 1,
    takenAt: new Date(now).toISOString(),
    prefix: names.prefix,
    streams,
  };
  await writeManifest(dir, manifest);
  return manifest;
}

async function sourceSeqAt({ nc, names }: BackupParts, seq: number): Promise<{ sourceSeq?: number }> {
  if (seq === 0) return {};
  const place = await openHistory(await jetstreamManager(nc, { checkAPI: false }), names).at(seq);
  return place === undefined ? {} : { sourceSeq: place.sourceSeq };
}

async function backUpStream(
  nc: NatsConnection,
  name: string,
  dir: string,
): Promise<BackedUpStream | undefined> {
  const file = `${name}.snapshot`;
  const handle = await open(join(dir, file), 'w');
  const hash = createHash('sha256');
  let bytes = 0;
  try {
    const head = await readSnapshot(nc, name, async (chunk) => {
      hash.update(chunk);
      bytes += chunk.length;
      await handle.write(chunk);
    });
    if (head === undefined) return undefined;
    await handle.sync();
    const { config, state } = head;
    return {
      name,
      file,
      bytes,
      sha256: hash.digest('hex'),
      messages: state.messages,
      firstSeq: state.first_seq,
      lastSeq: state.last_seq,
      config: { ...config },
      state: { ...state },
    };
  } finally {
    await handle.close();
  }
}
