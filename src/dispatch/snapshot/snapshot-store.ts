import { setImmediate as nextTurn } from 'node:timers/promises';
import { jetstream } from '@nats-io/jetstream';
import { type ObjectInfo, type ObjectStore, Objm, StorageType } from '@nats-io/obj';
import { type NatsConnection, nanos } from '@nats-io/transport-node';
import { isRefusal } from '../../log/refusal.ts';
import type { Names } from '../../log/subjects.ts';
import type { Config } from '../../platform/config.ts';
import { damaged } from './blocks.ts';

export interface SnapshotStoreParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly config: Pick<Config, 'dispatchGroup' | 'replicas' | 'hotWindowHours'>;
}

export interface StoredSnapshot {
  readonly name: string;
  /** Sequence of the log that it was taken at. */
  readonly position: number;
  readonly bytes: number;
}

const SLOTS = [0, 1];
const HOUR_MS = 3_600_000;
/** Pieces that the client neither joins nor cuts. */
const PIECE_BYTES = 128 * 1_024;
/** A snapshot whose pieces do not come for so long has lost them. */
const PIECE_WAIT_MS = 5_000;

/**
 * The last two snapshots of a dispatcher group, in the object store. A new one becomes visible when all of it is
 * stored, and takes the place of the older. The store forgets what is older than the hot window: such a snapshot is of
 * no use, and neither are the pieces of one whose writer died.
 */
export class SnapshotStore {
  readonly #parts: SnapshotStoreParts;
  readonly #objm: Objm;

  constructor(parts: SnapshotStoreParts) {
    this.#parts = parts;
    this.#objm = new Objm(jetstream(parts.nc, { timeout: PIECE_WAIT_MS }));
  }

  /** Those that are there, the latest first. */
  async list(): Promise<readonly StoredSnapshot[]> {
    const store = await this.#objm.open(this.#parts.names.snapshots, false);
    const stored = await Promise.all(SLOTS.map((slot) => this.#look(store, slot)));
    return stored
      .filter((snapshot) => snapshot !== undefined)
      .sort((one, other) => other.position - one.position);
  }

  async *read({ name }: StoredSnapshot): AsyncGenerator<Uint8Array> {
    const store = await this.#objm.open(this.#parts.names.snapshots, false);
    const object = await store.get(name);
    if (object === null) throw damaged('it is gone');
    const reader = object.data.getReader();
    // What goes wrong shows in the stream as well.
    object.error.catch(() => undefined);
    try {
      for (;;) {
        const { done, value } = await inTime(reader.read());
        if (done) return;
        yield value;
      }
    } finally {
      await reader.cancel().catch(() => undefined);
    }
  }

  /** Stores the blocks as the latest snapshot; others have their turn between two of them. Answers how many bytes it has. */
  async write(blocks: Iterable<Buffer>, position: number): Promise<number> {
    const store = await this.#open();
    const present = await this.list();
    const free = SLOTS.map((slot) => this.#name(slot)).find((name) =>
      present.every((other) => other.name !== name),
    );
    const name = free ?? present.at(-1)?.name ?? this.#name(0);
    const description = 'What a dispatcher knew of the log';
    const metadata = { position: String(position) };
    const info = await store.put(
      { name, description, metadata, options: { max_chunk_size: PIECE_BYTES } },
      streamOf(blocks),
    );
    return info.size;
  }

  async #look(store: ObjectStore, slot: number): Promise<StoredSnapshot | undefined> {
    let info: ObjectInfo | null;
    try {
      info = await store.info(this.#name(slot));
    } catch (error) {
      if (isRefusal(error, 'stream_not_found')) return undefined;
      throw error;
    }
    const position = Number(info?.metadata?.['position']);
    if (info === null || info.deleted || !(position > 0)) return undefined;
    return { name: info.name, position, bytes: info.size };
  }

  async #open(): Promise<ObjectStore> {
    const { names, config } = this.#parts;
    try {
      return await this.#objm.open(names.snapshots);
    } catch {
      return this.#objm.create(names.snapshots, {
        description: 'Snapshots of the dispatchers: without them a new dispatcher reads the whole log',
        storage: StorageType.File,
        replicas: config.replicas,
        ttl: nanos(config.hotWindowHours * HOUR_MS),
      });
    }
  }

  #name(slot: number): string {
    return this.#parts.names.snapshot(this.#parts.config.dispatchGroup, slot);
  }
}

/** Cut so that no piece takes long to deal with. */
function streamOf(blocks: Iterable<Buffer>): ReadableStream<Uint8Array> {
  const pieces = piecesOf(blocks);
  return new ReadableStream({
    async pull(controller) {
      await nextTurn();
      const { done, value } = pieces.next();
      if (done) controller.close();
      else controller.enqueue(value);
    },
  });
}

function* piecesOf(blocks: Iterable<Buffer>): Generator<Uint8Array, undefined> {
  for (const block of blocks)
    for (let at = 0; at < block.length; at += PIECE_BYTES) yield block.subarray(at, at + PIECE_BYTES);
  return undefined;
}

async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  try {
    return await Promise.race([
      work,
      new Promise<never>((_, reject) => {
        timer = setTimeout(() => reject(damaged('its pieces do not come')), PIECE_WAIT_MS);
      }),
    ]);
  } finally {
    clearTimeout(timer);
  }
}
