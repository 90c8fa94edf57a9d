import { crc32 } from 'node:zlib';
import { TaskledgerError } from '../../domain/errors.ts';

/**
 * A snapshot is a row of blocks: a byte that says what it is, the length and the CRC-32 of its content (four bytes
 * each, little endian; the sum begins with that first byte), and the content. The first says which format it is, the last that nothing is missing.
 */
export const Block = { format: 1, header: 2, shards: 3, end: 4 } as const;
export type Block = (typeof Block)[keyof typeof Block];

const HEAD_BYTES = 9;

/** Of a block that is too long for anybody to have written it. */
const LONGEST = 512 * 1_024 * 1_024;

export function blockOf(kind: Block, content: Uint8Array): Buffer {
  const block = Buffer.alloc(HEAD_BYTES + content.length);
  block.writeUInt8(kind, 0);
  block.writeUInt32LE(content.length, 1);
  block.writeUInt32LE(crc32(content, kind), 5);
  block.set(content, HEAD_BYTES);
  return block;
}

/** Cuts what comes in pieces of any size into blocks. Throws `snapshot_unreadable` at the first that is damaged. */
export class BlockReader {
  #pieces: Buffer[] = [];
  #length = 0;

  /** The blocks that are complete now. */
  *feed(piece: Uint8Array): Generator<{ kind: number; content: Buffer }> {
    this.#pieces.push(Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength));
    this.#length += piece.length;
    for (;;) {
      const head = this.#peek(HEAD_BYTES);
      if (head === undefined) return;
      const length = head.readUInt32LE(1);
      if (length > LONGEST) throw damaged('a block has an impossible length');
      const block = this.#peek(HEAD_BYTES + length);
      if (block === undefined) return;
      const content = block.subarray(HEAD_BYTES, HEAD_BYTES + length);
      const kind = head.readUInt8(0);
      if (crc32(content, kind) !== head.readUInt32LE(5)) throw damaged('a checksum does not match');
      this.#drop(HEAD_BYTES + length);
      yield { kind, content };
    }
  }

  /** Whether something came after the last block. */
  get empty(): boolean {
    return this.#length === 0;
  }

  /** The next bytes as one piece, at least so many; undefined while they are not all there. */
  #peek(bytes: number): Buffer | undefined {
    if (this.#length < bytes) return undefined;
    if ((this.#pieces[0]?.length ?? 0) < bytes) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0];
  }

  #drop(bytes: number): void {
    const [first, ...others] = this.#pieces;
    const rest = first?.subarray(bytes);
    this.#pieces = rest === undefined || rest.length === 0 ? others : [rest, ...others];
    this.#length -= bytes;
  }
}

export const damaged = (reason: string): TaskledgerError =>
  new TaskledgerError('snapshot_unreadable', { reason });
