import { type FileHandle, mkdir, open, unlink } from 'node:fs/promises';
import { dirname } from 'node:path';

interface Write {
  readonly text: string;
  readonly done: () => void;
  readonly failed: (error: unknown) => void;
}

/**
 * A file that is only appended to, and made when there is something to write. Writes that come while one is under way
 * go out together, with one sync. Owner of the handle; one operation at a time.
 *
 * Whoever believes this process dead may have taken the file away: before each write it is looked whether it is still
 * there, and else a new one is begun with `whole()`.
 */
export class SpoolFile {
  readonly path: string;
  readonly #whole: () => string;
  readonly #needed: () => boolean;
  #handle: FileHandle | undefined;
  #writes: Write[] = [];
  #busy: Promise<void> | undefined;
  /** A write failed: what it left is closed by a line end. */
  #torn = false;

  /** `whole`: all that a new file must hold, what waits to be written included. `needed`: whether the file may not go. */
  constructor(parts: { path: string; whole: () => string; needed: () => boolean }) {
    this.path = parts.path;
    this.#whole = parts.whole;
    this.#needed = parts.needed;
  }

  /** Resolves when the text is on the disk. */
  append(text: string): Promise<void> {
    return new Promise((done, failed) => {
      this.#writes.push({ text, done, failed });
      this.#busy ??= this.#writeAll().finally(() => {
        this.#busy = undefined;
      });
    });
  }

  /** What is under way has ended; the file is gone unless it is needed. */
  async close(): Promise<void> {
    await this.#busy;
    await this.#handle?.close();
    this.#handle = undefined;
  }

  async #writeAll(): Promise<void> {
    while (this.#writes.length > 0) {
      const batch = this.#writes.splice(0);
      try {
        await this.#write(batch.map(({ text }) => text).join(''));
        for (const { done } of batch) done();
      } catch (error) {
        for (const { failed } of batch) failed(error);
      }
    }
  }

  async #write(text: string): Promise<void> {
    if (!this.#needed()) return this.#remove();
    const there = this.#handle !== undefined && (await this.#handle.stat()).nlink > 0;
    const handle = there && this.#handle !== undefined ? this.#handle : await this.#create();
    const bytes = there ? `${this.#torn ? '\n' : ''}${text}` : this.#whole();
    try {
      await handle.appendFile(bytes);
      await handle.datasync();
      this.#torn = false;
      if (!there) await syncDirectory(dirname(this.path));
    } catch (error) {
      if (there) this.#torn = true;
      else await this.#remove().catch(() => undefined);
      throw error;
    }
  }

  async #create(): Promise<FileHandle> {
    await this.#handle?.close();
    this.#handle = undefined;
    await mkdir(dirname(this.path), { recursive: true });
    this.#handle = await open(this.path, 'a', 0o600);
    return this.#handle;
  }

  async #remove(): Promise<void> {
    const handle = this.#handle;
    this.#handle = undefined;
    this.#torn = false;
    if (handle === undefined) return;
    await handle.close();
    await unlink(this.path).catch(ignoreMissing);
  }
}

/** Makes the name of a new file last as well. */
async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

export function ignoreMissing(error: unknown): void {
  if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
}
