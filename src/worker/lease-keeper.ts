import { createRequire } from 'node:module';
import { Worker as Thread } from 'node:worker_threads';
import { TaskledgerError } from '../domain/errors.ts';
import type { Json } from '../domain/json.ts';
import type { Logger } from '../observe/log.ts';
import type { NatsSettings } from '../platform/nats.ts';
import type { FromLeaseThread, ToLeaseThread } from './lease-renewal.ts';
import { type Lease, LeaseTable } from './lease-table.ts';
import type { LeaseThreadData } from './lease-thread.ts';
import { monotonicMs } from './monotonic.ts';
import { storableResult } from './result.ts';
import type { WorkerIdentity } from './worker-entry.ts';

const TICK_EVERY_MS = 200;
const RESTART_PAUSE_MS = 500;
/** An entry of the registry holds the progress of all attempts of a worker. */
const PROGRESS_LIMITS = { maxBytes: 2_048, maxDepth: 16 };
/** A stopping thread that does not answer is ended after this. */
const STOP_PATIENCE_MS = 3_000;

export interface LeaseKeeperOptions {
  readonly slots: number;
  readonly nats: NatsSettings;
  readonly identity: WorkerIdentity;
  readonly entrySubject: string;
  /** The shortest ack-wait of any lease. */
  readonly leastAckWaitMs: number;
  readonly maxBlockedMs: number;
  /** The lease in this slot could not be renewed for its whole ack-wait. Called once a holding, at the next tick. */
  onExpired(slot: number): void;
  readonly logger: Logger;
}

/** The main thread's side of the leases: takes and releases them, and watches over the thread that renews them. */
export class LeaseKeeper {
  readonly #options: LeaseKeeperOptions;
  readonly #table: LeaseTable;
  /** Taken slots with their ack-wait; a slot leaves when it is released or has expired. */
  readonly #watched = new Map<number, number>();
  /** Not passed on yet, by task. */
  readonly #progress = new Map<string, Extract<ToLeaseThread, { kind: 'progress' }>>();
  #thread: Thread | undefined;
  #ticking: NodeJS.Timeout | undefined;
  #degraded: string | undefined;
  #stopping = false;

  constructor(options: LeaseKeeperOptions) {
    this.#options = options;
    this.#table = LeaseTable.create(options.slots);
  }

  /** Resolves when the thread is connected and the registry knows this worker. */
  async start(): Promise<void> {
    this.#table.tick(monotonicMs());
    await this.#spawn();
    this.#ticking = setInterval(() => this.#tick(), TICK_EVERY_MS);
  }

  take(lease: Lease): number {
    const slot = this.#table.take(lease);
    if (slot >= 0) this.#watched.set(slot, lease.ackWaitMs);
    return slot;
  }

  release(slot: number): void {
    if (slot < 0) return;
    this.#watched.delete(slot);
    this.#table.release(slot);
  }

  setRenewUntil(slot: number, renewUntil: number): void {
    if (slot >= 0) this.#table.setRenewUntil(slot, renewUntil);
  }

  /** Shown in the registry with its next write; of many in a row, the last. What is no small JSON is logged instead. */
  showProgress(task: string, attempt: number, progress: Json): void {
    this.#progress.set(task, { kind: 'progress', task, attempt, progress });
  }

  /** Shown in the registry: why this worker takes no work at present. */
  showDegraded(reason: string | undefined): void {
    this.#degraded = reason;
    this.#thread?.postMessage({ kind: 'degraded', reason } satisfies ToLeaseThread);
  }

  /** Ends the thread; it takes this worker out of the registry first. */
  async stop(): Promise<void> {
    this.#stopping = true;
    clearInterval(this.#ticking);
    const thread = this.#thread;
    this.#thread = undefined;
    if (thread === undefined) return;
    const ended = new Promise<void>((resolve) => thread.once('exit', () => resolve()));
    thread.postMessage({ kind: 'stop' } satisfies ToLeaseThread);
    const impatient = setTimeout(() => void thread.terminate(), STOP_PATIENCE_MS);
    await ended;
    clearTimeout(impatient);
  }

  #tick(): void {
    const now = monotonicMs();
    this.#table.tick(now);
    if (this.#progress.size > 0) this.#passOnProgress();
    for (const [slot, ackWaitMs] of this.#watched) {
      if (now - this.#table.confirmedAt(slot) <= ackWaitMs) continue;
      this.#watched.delete(slot);
      this.#options.onExpired(slot);
    }
  }

  #passOnProgress(): void {
    for (const told of this.#progress.values()) {
      const shown = storableResult(told.progress, PROGRESS_LIMITS);
      if (shown.ok)
        this.#thread?.postMessage({ ...told, progress: shown.value ?? null } satisfies ToLeaseThread);
      else this.#options.logger.warn({ task: told.task }, `progress ${shown.reason}`);
    }
    this.#progress.clear();
  }

  async #spawn(): Promise<void> {
    const { identity, nats, entrySubject, leastAckWaitMs, maxBlockedMs, logger } = this.#options;
    const thread = startThread({
      shared: this.#table.shared,
      // A frozen or class-made settings object may not survive the copy to the thread.
      nats: {
        natsUrl: nats.natsUrl,
        natsCreds: nats.natsCreds,
        natsUser: nats.natsUser,
        natsPassword: nats.natsPassword,
      },
      identity,
      entrySubject,
      scanEveryMs: Math.max(20, Math.min(1_000, leastAckWaitMs / 12)),
      maxBlockedMs,
    });
    this.#thread = thread;
    await new Promise<void>((resolve, reject) => {
      let started = false;
      thread.on('message', (message: FromLeaseThread) => {
        if (message.kind !== 'started') return;
        started = true;
        if (this.#degraded !== undefined) this.showDegraded(this.#degraded);
        resolve();
      });
      thread.once('error', (error) => {
        if (started) logger.error({ err: error }, 'the lease thread failed; starting another');
        else reject(startFailure(error, nats.natsUrl));
      });
      thread.once('exit', (code) => {
        if (!started) reject(startFailure(new Error(`the lease thread ended with ${code}`), nats.natsUrl));
        else if (!this.#stopping) this.#respawn();
      });
    });
  }

  #respawn(): void {
    setTimeout(() => {
      if (this.#stopping) return;
      this.#spawn().catch((error: unknown) => {
        this.#options.logger.error({ err: error }, 'the lease thread could not be started again');
        this.#respawn();
      });
    }, RESTART_PAUSE_MS);
  }
}

/** An error of another thread has lost its class. */
const startFailure = (cause: Error, url: string): TaskledgerError =>
  new TaskledgerError('nats_unreachable', { url, reason: cause.message }, { cause });

/** From source, the thread needs the same TypeScript loader as the rest; from a build it is plain JavaScript. */
function startThread(workerData: LeaseThreadData): Thread {
  if (import.meta.url.endsWith('.js'))
    return new Thread(new URL('./lease-thread.js', import.meta.url), { workerData });
  const entry = new URL('./lease-thread.ts', import.meta.url).href;
  const loader = createRequire(import.meta.url)
    .resolve('tsx/esm/api')
    .replace(/\.cjs$/, '.mjs');
  const script = `import(${JSON.stringify(loader)}).then(({ tsImport }) => tsImport(${JSON.stringify(entry)}, ${JSON.stringify(entry)}))`;
  return new Thread(script, { eval: true, execArgv: [], workerData });
}
