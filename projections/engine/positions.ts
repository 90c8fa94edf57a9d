import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../../src/domain/errors.ts';
import type { Names } from '../../src/log/subjects.ts';
import type { Projection } from './projection.ts';

/** Weight of the newest measurement in the rate: about the last 20 batches count. */
const RATE_WEIGHT = 0.05;

/**
 * What this process knows of how far the read models have come. Owned by the projector's loop; announces every move on
 * `names.projectionPosition(name)` as `{ "position": <seq>, "at": <ms since 1970> }`.
 */
export class Positions {
  readonly #nc: NatsConnection;
  readonly #names: Names;
  readonly #announced: boolean;
  readonly #seqs: Map<string, number>;
  #waiters: {
    readonly seq: number;
    readonly resolve: () => void;
    readonly reject: (error: Error) => void;
  }[] = [];
  #closed = false;
  #logEnd = 0;
  #batches = 0;
  #rate = 0;
  #lastCommitAt = performance.now();

  /** `announced: false` for tables that nobody reads yet. */
  constructor(parts: {
    nc: NatsConnection;
    names: Names;
    projections: readonly Projection[];
    announced?: boolean;
  }) {
    this.#nc = parts.nc;
    this.#names = parts.names;
    this.#announced = parts.announced ?? true;
    this.#seqs = new Map(parts.projections.map(({ name }) => [name, 0]));
  }

  of(projection: string): number {
    return this.#seqs.get(projection) ?? 0;
  }

  /** What the database says, and how far the log goes. */
  load(checkpoints: readonly { name: string; seq: number }[], logEnd: number): void {
    for (const { name, seq } of checkpoints) this.#seqs.set(name, seq);
    this.logReaches(logEnd);
    this.#wake();
  }

  logReaches(seq: number): void {
    this.#logEnd = seq;
  }

  /** After a commit. */
  committed(projections: readonly string[], seq: number, events: number): void {
    const now = performance.now();
    const rate = (events * 1_000) / Math.max(1, now - this.#lastCommitAt);
    this.#lastCommitAt = now;
    this.#batches += 1;
    this.#rate += RATE_WEIGHT * (rate - this.#rate);
    this.#logEnd = Math.max(this.#logEnd, seq);
    const announcement = JSON.stringify({ position: seq, at: Date.now() });
    for (const name of projections) {
      this.#seqs.set(name, seq);
      if (this.#announced && !this.#nc.isClosed())
        this.#nc.publish(this.#names.projectionPosition(name), announcement);
    }
    this.#wake();
  }

  lag(): number {
    return Math.max(0, this.#logEnd - this.#least());
  }

  stats() {
    return {
      lag: this.lag(),
      positions: Object.fromEntries(this.#seqs),
      eventsPerSecond: Math.round(this.#rate),
      batches: this.#batches,
    };
  }

  whenCaughtUp(seq: number): Promise<void> {
    if (this.#least() >= seq) return Promise.resolve();
    if (this.#closed) return Promise.reject(new TaskledgerError('shutting_down'));
    return new Promise((resolve, reject) => this.#waiters.push({ seq, resolve, reject }));
  }

  close(): void {
    this.#closed = true;
    for (const { reject } of this.#waiters.splice(0)) reject(new TaskledgerError('shutting_down'));
  }

  #least(): number {
    return Math.min(...this.#seqs.values());
  }

  #wake(): void {
    if (this.#waiters.length === 0) return;
    const least = this.#least();
    for (const { seq, resolve } of this.#waiters) if (seq <= least) resolve();
    this.#waiters = this.#waiters.filter(({ seq }) => seq > least);
  }
}
