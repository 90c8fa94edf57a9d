import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import { Leadership } from '../log/leadership.ts';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import { Nap } from '../platform/nap.ts';
import type { Patience } from '../platform/patience.ts';
import type { Service } from '../platform/service.ts';
import type { BulkKind, TaskRef } from './bulk-kind.ts';
import { advanced, type Operation, prepared, type TargetOutcome } from './operation.ts';
import type { Operations } from './operations.ts';

export interface RunnerParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly operations: Operations;
  readonly kinds: readonly BulkKind[];
  readonly leaseMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
}

export interface OperationRunner extends Service {
  /** One page of every running operation whose time has come. */
  runOnce(): Promise<{ pages: number; targets: number }>;
}

/** Targets in one page, acted on together: enough to be fast, few enough that a pause takes effect at once. */
const PAGE = 200;
/** With a rate, a page is what this part of a second allows. */
const PACE_S = 0.25;
/** Pause after a page that could not be done, and the longest sleep when nothing is heard. */
const RETRY_MS = 1_000;

export const createOperationRunner = (parts: RunnerParts): OperationRunner => new Runner(parts);

/**
 * Works on the running operations, page by page, while it leads; the other API processes stand by. The targets are stored
 * before the page and the cursor after it, so a crash repeats one page, the same one, in which every task is found as it
 * was left.
 */
class Runner implements OperationRunner {
  readonly name = 'operation runner';
  readonly #parts: RunnerParts;
  readonly #kinds: ReadonlyMap<string, BulkKind>;
  readonly #leadership: Leadership;
  /** When the next page of an operation may be done (performance clock): its rate, or the pause after a failure. */
  readonly #notBefore = new Map<string, number>();
  readonly #nap = new Nap();
  /** Something has changed since the last look. */
  #nudged = false;
  #loop: Promise<void> | undefined;
  #stopping = false;

  constructor(parts: RunnerParts) {
    this.#parts = parts;
    this.#kinds = new Map(parts.kinds.map((kind) => [kind.kind, kind]));
    this.#leadership = new Leadership({
      nc: parts.nc,
      bucket: parts.names.buckets.leaders,
      key: 'operations',
      owner: `operations-${randomUUID()}`,
      leaseMs: parts.leaseMs,
      logger: parts.logger,
      onChange: () => this.#nudge(),
    });
  }

  async start(patience?: Patience): Promise<void> {
    if (this.#loop !== undefined || this.#stopping) return;
    this.#parts.operations.onChange(() => this.#nudge());
    await this.#leadership.start(patience);
    this.#loop = this.#run();
  }

  /** The page at hand is finished first. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#nap.wake();
    await this.#loop;
    await this.#leadership.stop();
  }

  async runOnce(): Promise<{ pages: number; targets: number }> {
    const counts = { pages: 0, targets: 0 };
    for (const operation of this.#parts.operations.running()) {
      if (this.#stopping || !this.#leadership.holds()) break;
      if (performance.now() < (this.#notBefore.get(operation.id) ?? 0)) continue;
      const done = await this.#page(operation);
      if (done === undefined) continue;
      counts.pages += 1;
      counts.targets += done;
    }
    return counts;
  }

  async #run(): Promise<void> {
    while (!this.#stopping) {
      this.#nudged = false;
      const { pages } = await this.runOnce();
      if (pages === 0) await this.#pause();
    }
  }

  /** (1) read and store the targets (2) act on each (3) store cursor and counts. Answers how many, undefined when it must be tried again. */
  async #page({ id }: Operation): Promise<number | undefined> {
    const { operations, clock, logger } = this.#parts;
    const startedAt = performance.now();
    try {
      // What the list says may be a moment old.
      const operation = await operations.get(id);
      const kind = this.#kinds.get(operation?.kind ?? '');
      if (operation === undefined || kind === undefined || operation.state !== 'running') {
        this.#notBefore.set(id, startedAt + RETRY_MS);
        return undefined;
      }
      const { cursor, ratePerSecond } = operation;
      const limit = ratePerSecond === null ? PAGE : Math.min(PAGE, Math.ceil(ratePerSecond * PACE_S));
      const page = await this.#targets(kind, operation, limit);
      if (page === undefined) return undefined;
      const { targets, next } = page;
      const outcomes = await Promise.all(targets.map((target) => attempt(kind, operation, target)));
      const after = await operations.change(id, (current) =>
        advanced(current, { from: cursor, next, outcomes }, clock.now()),
      );
      if (ratePerSecond !== null)
        this.#notBefore.set(id, startedAt + (targets.length / ratePerSecond) * 1_000);
      if (after.state === 'done') {
        this.#notBefore.delete(id);
        logger.info({ operation: id, kind: kind.kind, progress: after.progress }, 'bulk operation done');
      }
      return targets.length;
    } catch (error) {
      this.#notBefore.set(id, startedAt + RETRY_MS);
      logger.warn({ operation: id, error: String(error) }, 'a page was not done; trying again');
      return undefined;
    }
  }

  /** The page at the cursor, stored as such unless it is empty. Undefined when the operation has moved on or was stopped meanwhile. */
  async #targets(kind: BulkKind, operation: Operation, limit: number): Promise<Operation['page']> {
    if (operation.page !== undefined) return operation.page;
    const { id, cursor } = operation;
    const { targets, nextCursor: next } = await kind.page(operation, { cursor, limit });
    if (targets.length === 0) return { targets: [], next };
    const page = { from: cursor, targets: [...targets], next };
    const stored = await this.#parts.operations.change(id, (current) => prepared(current, page));
    return stored.cursor === cursor && stored.state === 'running' ? stored.page : undefined;
  }

  /** Until an operation's time comes, something is heard, or RETRY_MS have passed. */
  async #pause(): Promise<void> {
    if (this.#stopping || this.#nudged) return;
    const now = performance.now();
    const waits = [...this.#notBefore.values()].map((at) => at - now).filter((ms) => ms > 0);
    await this.#nap.take(Math.min(RETRY_MS, ...waits));
  }

  #nudge(): void {
    this.#nudged = true;
    this.#nap.wake();
  }
}

/** Throws only what makes the whole page worth another try. */
async function attempt(kind: BulkKind, operation: Operation, target: TaskRef): Promise<TargetOutcome> {
  try {
    return await kind.act(operation, target);
  } catch (error) {
    if (error instanceof TaskledgerError && error.code === 'log_unavailable') throw error;
    const { code, message } =
      error instanceof TaskledgerError ? error : new TaskledgerError('internal', {}, { cause: error });
    return { taskId: target.taskId, code, message };
  }
}
