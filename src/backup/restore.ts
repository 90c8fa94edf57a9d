import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { join } from 'node:path';
import { type JetStreamManager, jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { Names } from '../log/subjects.ts';
import type { Config } from '../platform/config.ts';
import { type BackedUpStream, readManifest } from './manifest.ts';
import { requireOneLog } from './one-log.ts';
import { presenceOf } from './presence.ts';
import { choose } from './selection.ts';
import { type SnapshotHead, writeSnapshot } from './snapshot.ts';

export interface RestoreParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly config: Pick<Config, 'replicas'>;
  readonly dir: string;
  /** Short or full names of streams and buckets; all when absent. */
  readonly only?: readonly string[] | undefined;
  /** Deletes streams that are there and hold nothing; they are refused otherwise. */
  readonly replaceEmpty?: boolean;
  readonly onProgress?: (stream: BackedUpStream, bytes: number) => void;
  readonly onStream?: (stream: BackedUpStream) => void;
}

/** What a restore will do, if nothing changes until then. */
export interface RestorePlan {
  readonly takenAt: string;
  /** In the order in which they are restored. */
  readonly steps: readonly {
    readonly stream: BackedUpStream;
    /** It exists and holds nothing: it is deleted first. */
    readonly replaces: boolean;
  }[];
  /** Losses beyond what the age of the backup explains. */
  readonly warnings: readonly string[];
}

/**
 * Looks whether the backup, or the streams of it that are asked for, can be restored on these servers. Nothing is changed;
 * the files are read and checked. Throws `backup_unreadable`, `backup_lacks`, `restore_inseparable`, `restore_not_empty`
 * and `restore_replaces`.
 */
export async function planRestore(parts: RestoreParts): Promise<RestorePlan> {
  const { nc, names, dir, only, replaceEmpty = false } = parts;
  const manifest = await readManifest(dir);
  if (manifest.prefix !== names.prefix)
    throw new TaskledgerError('backup_unreadable', {
      dir,
      reason: `it is of an installation with the prefix "${manifest.prefix}", not "${names.prefix}"`,
    });
  const chosen = choose(manifest, { names, dir, only });
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const warnings = await requireOneLog(jsm, { names, held: manifest.streams, chosen });
  const empty = await requireRoom(jsm, chosen, replaceEmpty);
  for (const stream of chosen) await checkFile(dir, stream);
  return {
    takenAt: manifest.takenAt,
    steps: chosen.map((stream) => ({ stream, replaces: empty.has(stream.name) })),
    warnings,
  };
}

/**
 * Makes streams of a backup, with the sequences they had. Nothing of the installation may run while TASKS is among them;
 * of the others processes hear by themselves. The server gives a restored TASKS a new time of creation: read models that
 * reflect what came after the backup do not take it for the same log. What was made stays when a later one fails.
 */
export async function restore(parts: RestoreParts): Promise<RestorePlan> {
  const plan = await planRestore(parts);
  await carryOut(plan, parts);
  return plan;
}

export async function carryOut({ steps }: RestorePlan, parts: RestoreParts): Promise<void> {
  const { nc, dir, config, onProgress, onStream } = parts;
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  for (const { stream, replaces } of steps) {
    if (replaces) {
      // Whoever runs may have put something into it since the plan was made.
      await requireRoom(jsm, [stream], true);
      await jsm.streams.delete(stream.name);
    }
    const head = {
      config: { ...stream.config, ...drawingOn(stream), num_replicas: config.replicas },
      state: stream.state,
    } as unknown as SnapshotHead;
    const file = createReadStream(join(dir, stream.file));
    await writeSnapshot(
      nc,
      head,
      counted(file, (bytes) => onProgress?.(stream, bytes)),
    );
    onStream?.(stream);
  }
}

/** The names of those that exist and are empty. Throws `restore_not_empty`, or `restore_replaces` when these are not to be replaced. */
async function requireRoom(
  jsm: JetStreamManager,
  streams: readonly BackedUpStream[],
  replaceEmpty: boolean,
): Promise<ReadonlySet<string>> {
  const holding: string[] = [];
  const empty: string[] = [];
  for (const { name } of streams) {
    const presence = await presenceOf(jsm, name);
    if (presence.kind === 'holding') holding.push(`${name} (${presence.what})`);
    if (presence.kind === 'empty') empty.push(name);
  }
  if (holding.length > 0) throw new TaskledgerError('restore_not_empty', { streams: holding.join(', ') });
  if (empty.length > 0 && !replaceEmpty)
    throw new TaskledgerError('restore_replaces', { streams: empty.join(', ') });
  return new Set(empty);
}

/** A restored stream does not look where it had come to with its source: it would draw everything a second time. */
function drawingOn({ config, sourceSeq }: BackedUpStream): object {
  const { sources } = config as { sources?: readonly object[] };
  if (sources === undefined || sourceSeq === undefined) return {};
  return { sources: sources.map((source) => ({ ...source, opt_start_seq: sourceSeq + 1 })) };
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

async function* counted(
  chunks: AsyncIterable<Buffer>,
  onBytes: (bytes: number) => void,
): AsyncIterable<Buffer> {
  let bytes = 0;
  for await (const chunk of chunks) {
    yield chunk;
    bytes += chunk.length;
    onBytes(bytes);
  }
}
