import { z } from 'zod';
import { TaskledgerError } from '../../domain/errors.ts';
import type { TokenState } from '../ledger.ts';
import type { AgeGrain } from '../log-age.ts';
import type { OutageState } from '../outage.ts';
import type { RunningAttempt } from '../running-attempts.ts';
import { SHARDS } from '../task-index.ts';
import { Block, BlockReader, blockOf, damaged } from './blocks.ts';
import { type Place, RowWriter, readRows } from './row-codec.ts';
import type { TaskRow } from './task-row.ts';

/** Goes up whenever an older release would misread what is written. */
const FORMAT = 'taskledger dispatcher snapshot 1';
/** A block is complete when it has so many bytes of rows: few enough to be made in a few milliseconds. */
const BLOCK_BYTES = 64 * 1_024;

/** What is known besides the tasks, as of `position`. */
export interface SnapshotHeader {
  /** Sequence of the last event folded. */
  readonly position: number;
  /** Of that event: tells another log from the one that this was taken from. */
  readonly eventId: string;
  /** Ms since 1970, by the writer's clock: for people. */
  readonly takenAt: number;
  readonly tokens: readonly TokenState[];
  readonly age: readonly AgeGrain[];
  readonly outage: OutageState;
  readonly attempts: readonly RunningAttempt[];
}

/** What a snapshot is made of. `position` and `rows` are read again for every block: meanwhile the world moves on. */
export interface SnapshotSource {
  header(): SnapshotHeader;
  readonly position: number;
  readonly rows: (shard: number) => Iterable<TaskRow>;
}

/** Some shards of the tasks, as of a position of their own: not before the header's. */
export interface RestoredBlock {
  readonly position: number;
  readonly shards: readonly number[];
  readonly rows: () => Iterable<TaskRow>;
}

export interface Snapshot {
  readonly header: SnapshotHeader;
  readonly blocks: readonly RestoredBlock[];
  readonly tasks: number;
}

/**
 * A snapshot of what goes on changing, as blocks. Each block is made at once and so agrees with one position of the
 * log; between two of them there is time for other work. Whoever reads the log on from the header's position, and
 * passes over what a task's shard has seen already, knows what somebody knows who read it from the beginning.
 */
export function* encodeSnapshot(source: SnapshotSource, blockBytes = BLOCK_BYTES): Generator<Buffer> {
  yield blockOf(Block.format, Buffer.from(FORMAT));
  yield blockOf(Block.header, Buffer.from(JSON.stringify(source.header())));
  const places = new Places();
  const writer = new RowWriter();
  let shards: number[] = [];
  let tasks = 0;
  for (let shard = 0; shard < SHARDS; shard += 1) {
    const before = tasks;
    for (const row of source.rows(shard)) {
      writer.write(row, places.numberOf(row));
      tasks += 1;
    }
    // One without tasks needs no position: whatever happened in it since the header's came to an end.
    if (tasks > before) shards.push(shard);
    if (shards.length === 0 || (writer.length < blockBytes && shard < SHARDS - 1)) continue;
    const head = Buffer.from(JSON.stringify({ position: source.position, shards, places: places.takeNew() }));
    const length = Buffer.alloc(4);
    length.writeUInt32LE(head.length);
    yield blockOf(Block.shards, Buffer.concat([length, head, writer.take()]));
    shards = [];
  }
  yield blockOf(Block.end, Buffer.from(JSON.stringify({ tasks })));
}

/** Throws `snapshot_unreadable` unless it is all there, undamaged, and of a format that is known. */
export async function decodeSnapshot(pieces: AsyncIterable<Uint8Array>): Promise<Snapshot> {
  const reader = new BlockReader();
  const decoder = new Decoder();
  try {
    for await (const piece of pieces) for (const block of reader.feed(piece)) decoder.take(block);
    if (!reader.empty) throw damaged('it ends in the middle of a block');
    return decoder.finish();
  } catch (error) {
    throw error instanceof TaskledgerError ? error : damaged(String(error));
  }
}

const header = z.object({ position: z.int().min(1), eventId: z.string(), takenAt: z.number() }).loose();
const shardsHead = z.object({
  position: z.int().min(1),
  shards: z.array(
    z
      .int()
      .min(0)
      .max(SHARDS - 1),
  ),
  places: z.array(z.tuple([z.string(), z.string(), z.int().min(1)])),
});
const end = z.object({ tasks: z.int().min(0) });

class Decoder {
  #format: string | undefined;
  #header: SnapshotHeader | undefined;
  readonly #blocks: RestoredBlock[] = [];
  readonly #places: Place[] = [];
  #tasks: number | undefined;

  take({ kind, content }: { kind: number; content: Buffer }): void {
    if (this.#format === undefined && kind !== Block.format) throw damaged('it does not begin like one');
    if (this.#tasks !== undefined) throw damaged('it goes on after its end');
    switch (kind) {
      case Block.format:
        this.#format = content.toString();
        if (this.#format !== FORMAT) throw damaged(`its format is "${this.#format.slice(0, 100)}"`);
        return;
      case Block.header:
        this.#header = parsed(header, content) as unknown as SnapshotHeader;
        return;
      case Block.shards:
        this.#takeShards(content);
        return;
      case Block.end:
        this.#tasks = parsed(end, content).tasks;
        return;
      default:
        throw damaged(`it has a block of kind ${kind}`);
    }
  }

  finish(): Snapshot {
    if (this.#header === undefined || this.#tasks === undefined) throw damaged('its end is missing');
    let tasks = 0;
    // Read once for nothing: what cannot be read must show before the first task is restored.
    for (const block of this.#blocks) for (const _row of block.rows()) tasks += 1;
    if (tasks !== this.#tasks) throw damaged(`it has ${tasks} tasks and should have ${this.#tasks}`);
    return { header: this.#header, blocks: this.#blocks, tasks };
  }

  #takeShards(content: Buffer): void {
    const rowsAt = 4 + content.readUInt32LE(0);
    const { position, shards, places } = parsed(shardsHead, content.subarray(4, rowsAt));
    for (const [tenant, type, version] of places) this.#places.push({ tenant, type, version });
    const rows = content.subarray(rowsAt);
    this.#blocks.push({ position, shards, rows: () => readRows(rows, this.#places) });
  }
}

function parsed<T>(schema: z.ZodType<T>, content: Buffer): T {
  return schema.parse(JSON.parse(content.toString()));
}

/** Numbers for what many rows have in common. */
class Places {
  readonly #numbers = new Map<string, number>();
  #new: [string, string, number][] = [];

  numberOf({ tenant, type, version }: Place): number {
    const key = `${tenant} ${type} ${version}`;
    let number = this.#numbers.get(key);
    if (number === undefined) {
      number = this.#numbers.size;
      this.#numbers.set(key, number);
      this.#new.push([tenant, type, version]);
    }
    return number;
  }

  /** Those that were named since the last call. */
  takeNew(): readonly [string, string, number][] {
    return this.#new.splice(0);
  }
}
