import { readdir, readFile, rename, stat, unlink } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import type { Logger } from '../../observe/log.ts';
import { describeProcess } from '../../platform/embedded/process-info.ts';
import { monotonicMs } from '../monotonic.ts';
import { SPOOL_SUFFIX } from './spool.ts';
import { ignoreMissing } from './spool-file.ts';
import { readSpool, type SpooledOutcome, type SpoolOwner } from './spool-format.ts';

export interface HeirOptions {
  readonly directory: string;
  /** Spools of others are none of its business. */
  readonly installation: string;
  /** Tells the log; rejects when the log does not answer, and then the rest is left for the next look. */
  tell(outcome: SpooledOutcome): Promise<void>;
  readonly logger: Logger;
}

const LOOK_EVERY_MS = 10_000;
/** Whether a process of another host lives cannot be seen: its file is an orphan when it has not changed for so long. */
const ORPHAN_AFTER_MS = 60_000;

/** The incarnations of this very process that have a spool of their own. */
const living = new Set<string>();

/**
 * Tells what workers that are dead have left in the spool directory. Two heirs of one file do no harm: the outcomes
 * keep their event ids and their worker's name, and the fence accepts each once. The same goes for an owner that was
 * taken for dead: it begins another file (SpoolFile).
 */
export class Heir {
  readonly #options: HeirOptions;
  readonly #worker: string;
  /** Of files whose owner cannot be looked up: when they were last seen to change. */
  readonly #seen = new Map<string, { readonly mark: string; readonly since: number }>();
  /** Files of other installations that were told of. */
  readonly #foreign = new Set<string>();
  #looking: NodeJS.Timeout | undefined;
  #look: Promise<void> | undefined;
  #stopped = false;

  constructor(worker: string, options: HeirOptions) {
    this.#worker = worker;
    this.#options = options;
  }

  start(): void {
    living.add(this.#worker);
    this.#looking = setInterval(() => void this.runOnce(), LOOK_EVERY_MS);
    void this.runOnce();
  }

  /** The outcome at hand is told to its end. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearInterval(this.#looking);
    await this.#look;
    living.delete(this.#worker);
  }

  /** One pass over the directory. */
  runOnce(): Promise<void> {
    this.#look ??= this.#inheritAll()
      .catch((error: unknown) => this.#options.logger.warn({ err: error }, 'spools of dead workers wait'))
      .finally(() => {
        this.#look = undefined;
      });
    return this.#look;
  }

  async #inheritAll(): Promise<void> {
    const names = await readdir(this.#options.directory).catch((error: unknown) => {
      ignoreMissing(error);
      return [];
    });
    for (const name of names) {
      if (this.#stopped) return;
      if (name.endsWith(SPOOL_SUFFIX)) await this.#inherit(join(this.#options.directory, name));
    }
  }

  async #inherit(path: string): Promise<void> {
    const text = await readFile(path, 'utf8').catch((error: unknown) => {
      ignoreMissing(error);
      return undefined;
    });
    if (text === undefined) return;
    const { owner, untold, damaged } = readSpool(text);
    if (this.#isForeign(path, owner)) return;
    if (!(await this.#isOrphan(path, text, owner))) return;
    for (const outcome of untold) {
      if (this.#stopped) return;
      await this.#options.tell(outcome);
    }
    // What was added meanwhile is told at the next look.
    if ((await stat(path).catch(() => undefined))?.size !== Buffer.byteLength(text)) return;
    this.#seen.delete(path);
    const fields = { path, worker: owner?.worker, told: untold.length, damaged };
    if (damaged === 0) {
      await unlink(path).catch(ignoreMissing);
      this.#options.logger.info(fields, 'told the outcomes that a dead worker had spooled');
    } else {
      await rename(path, `${path}.damaged`).catch(ignoreMissing);
      this.#options.logger.error(fields, 'a spool was damaged: put aside after telling what could be read');
    }
  }

  /** Its outcomes mean nothing to this log: a worker of the installation that it is of must find it. */
  #isForeign(path: string, owner: SpoolOwner | undefined): boolean {
    if (owner?.installation === undefined || owner.installation === this.#options.installation) return false;
    if (!this.#foreign.has(path))
      this.#options.logger.warn(
        { path, worker: owner.worker, of: owner.installation, here: this.#options.installation },
        'a spool of another installation, or of a log that was lost since, is left alone',
      );
    this.#foreign.add(path);
    return true;
  }

  async #isOrphan(path: string, text: string, owner: SpoolOwner | undefined): Promise<boolean> {
    if (owner?.host === hostname()) {
      if (owner.pid === process.pid && living.has(owner.worker)) return false;
      const process_ = await describeProcess(owner.pid);
      return process_ === undefined || process_.startedAt !== owner.startedAt || owner.pid === process.pid;
    }
    const now = monotonicMs();
    const mark = `${text.length} ${text.slice(-64)}`;
    const seen = this.#seen.get(path);
    if (seen?.mark !== mark) {
      this.#seen.set(path, { mark, since: now });
      return false;
    }
    return now - seen.since >= ORPHAN_AFTER_MS;
  }
}
