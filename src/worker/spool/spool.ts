import { mkdir, open, unlink } from 'node:fs/promises';
import { join } from 'node:path';
import type { Logger } from '../../observe/log.ts';
import { monotonicMs } from '../monotonic.ts';
import { SpoolFile } from './spool-file.ts';
import { outcomeLine, ownerLine, type SpooledOutcome, type SpoolOwner, toldLine } from './spool-format.ts';

export interface SpoolOptions {
  readonly directory: string;
  readonly owner: SpoolOwner;
  /** Told whenever the spool stops or begins to be able to keep outcomes: the reason, or undefined. */
  onProblem(problem: string | undefined): void;
  readonly logger: Logger;
}

/** An outcome that is being told to the log. Exactly one of its ends must be called. */
export interface Slip {
  /** Resolves when the outcome is on the disk, or with false when it cannot be put there. */
  keep(): Promise<boolean>;
  /** Whether the outcome has been on the disk, where others may have found it. */
  readonly kept: boolean;
  /** The log has answered: the outcome need not be kept. */
  settled(): void;
}

/** What the steps of an attempt know of the spool. */
export interface OutcomeKeeper {
  slip(outcome: SpooledOutcome): Slip;
}

/** For workers without a spool directory. */
export const noSpool: OutcomeKeeper = {
  slip: () => ({ keep: async () => false, kept: false, settled: () => {} }),
};

/** An outcome that the log has not confirmed for so long is put on the disk; at once when the connection is known to be away. */
const KEEP_AFTER_MS = 1_000;
const LOOK_EVERY_MS = 250;
/** How often it is tried whether the disk can be written: when it could, and when it could not. */
const PROBE_EVERY_MS = 10_000;
const PROBE_AGAIN_MS = 1_000;
/** About what the outcomes of one outage take; a disk with less is as good as full. */
const PROBE_BYTES = 256 * 1_024;

export const SPOOL_SUFFIX = '.spool';

/**
 * Keeps outcomes on the disk while the log does not answer, so that they outlive this process. One file a worker
 * incarnation, which goes when nothing is left in it; what a dead process has left is another's to tell (heir.ts).
 */
export class Spool implements OutcomeKeeper {
  readonly #options: SpoolOptions;
  readonly #file: SpoolFile;
  readonly #probePath: string;
  /** Outcomes that the log has not answered about, oldest first. */
  readonly #open = new Map<string, OpenSlip>();
  /** Of them, those that are or shall be in the file. */
  readonly #onDisk = new Map<string, SpooledOutcome>();
  #looking: NodeJS.Timeout | undefined;
  #probing: Promise<void> | undefined;
  #probeAt = 0;
  #problem: string | undefined;
  #away = false;

  constructor(options: SpoolOptions) {
    this.#options = options;
    const { directory, owner } = options;
    this.#file = new SpoolFile({
      path: join(directory, `${owner.worker}${SPOOL_SUFFIX}`),
      whole: () => [ownerLine(owner), ...[...this.#onDisk.values()].map(outcomeLine)].join(''),
      needed: () => this.#onDisk.size > 0,
    });
    this.#probePath = join(directory, `${owner.worker}.probe`);
  }

  /** Why outcomes cannot be kept at present. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Resolves when it is known whether the disk can be written. */
  async start(): Promise<void> {
    await this.#probe();
    this.#looking = setInterval(() => this.#look(), LOOK_EVERY_MS);
  }

  async stop(): Promise<void> {
    clearInterval(this.#looking);
    await this.#probing;
    await this.#file.close();
  }

  slip(outcome: SpooledOutcome): Slip {
    const id = outcome.command.eventId;
    const slip: OpenSlip = {
      since: monotonicMs(),
      kept: false,
      keeping: undefined,
      keep: () => this.#keep(slip, outcome),
      settled: () => {
        this.#open.delete(id);
        if (this.#onDisk.delete(id))
          void this.#file.append(toldLine(id)).catch((error) => this.#failed(error));
      },
    };
    this.#open.set(id, slip);
    if (this.#away) void slip.keep();
    return slip;
  }

  /** While the connection is away, whatever is not told yet is put on the disk at once. */
  connectionIs(state: 'away' | 'back'): void {
    this.#away = state === 'away';
    if (this.#away) for (const slip of this.#open.values()) void slip.keep();
  }

  #keep(slip: OpenSlip, outcome: SpooledOutcome): Promise<boolean> {
    slip.keeping ??= this.#write(slip, outcome).finally(() => {
      if (!slip.kept) slip.keeping = undefined;
    });
    return slip.keeping;
  }

  async #write(slip: OpenSlip, outcome: SpooledOutcome): Promise<boolean> {
    const { eventId } = outcome.command;
    this.#onDisk.set(eventId, outcome);
    try {
      await this.#file.append(outcomeLine(outcome));
    } catch (error) {
      if (!this.#open.has(eventId)) return false;
      this.#failed(error);
      return false;
    }
    slip.kept = true;
    this.#options.logger.info(
      { taskId: outcome.taskId, tenant: outcome.tenant },
      'outcome kept in the spool',
    );
    return true;
  }

  #look(): void {
    const now = monotonicMs();
    for (const slip of this.#open.values()) {
      if (now - slip.since < KEEP_AFTER_MS) break;
      if (!slip.kept && this.#problem === undefined) void slip.keep();
    }
    if (now >= this.#probeAt) void this.#probe();
  }

  /** Writes as much as an outage may need, and whatever could not be kept before. */
  #probe(): Promise<void> {
    this.#probing ??= this.#tryDisk()
      .then(
        () => this.#found(undefined),
        (error: unknown) => this.#failed(error),
      )
      .finally(() => {
        this.#probing = undefined;
      });
    return this.#probing;
  }

  async #tryDisk(): Promise<void> {
    await mkdir(this.#options.directory, { recursive: true });
    const handle = await open(this.#probePath, 'w', 0o600);
    try {
      await handle.writeFile(Buffer.alloc(PROBE_BYTES));
      await handle.datasync();
    } finally {
      await handle.close();
      await unlink(this.#probePath).catch(() => undefined);
    }
  }

  #failed(error: unknown): void {
    this.#found(error instanceof Error ? error.message : String(error));
  }

  #found(problem: string | undefined): void {
    this.#probeAt = monotonicMs() + (problem === undefined ? PROBE_EVERY_MS : PROBE_AGAIN_MS);
    if ((problem === undefined) === (this.#problem === undefined)) return;
    this.#problem = problem;
    this.#options.onProblem(problem);
  }
}

interface OpenSlip extends Slip {
  /** Monotonic ms. */
  readonly since: number;
  kept: boolean;
  keeping: Promise<boolean> | undefined;
}
