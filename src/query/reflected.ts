import type { NatsConnection, Subscription } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { Database } from './database.ts';
import { checkpoints } from './sql.ts';

/** The read models that answers come from. */
export const READ_MODELS = ['tasks', 'audit', 'queues', 'dead_letters'] as const;
export type ReadModel = (typeof READ_MODELS)[number];

/** How long to trust that the projector will announce the position; then the database is asked. */
const ANNOUNCED_WITHIN_MS = 100;
const POLL_MS = 200;
/** Announcements can be missed; what is remembered is never older than this, as long as Postgres answers. */
const REFRESH_MS = 1_000;

interface PositionSubject {
  projectionPosition(projection: string): string;
}

/**
 * How far the read models have come: remembered from the projectors' announcements, so that an answer can say its
 * position without asking. What is remembered was committed before, so a later read reflects at least that.
 */
export class Reflected {
  readonly #nc: NatsConnection;
  readonly #subjects: PositionSubject;
  readonly #database: Database;
  readonly #onMove: (position: number) => void;
  readonly #positions = new Map<string, number>(READ_MODELS.map((model) => [model, 0]));
  #waiters = new Set<{ readonly seq: number; readonly reached: () => void }>();
  #subscription: Subscription | undefined;
  #refreshing: NodeJS.Timeout | undefined;

  /** `onMove` hears the position of the slowest read model. */
  constructor(parts: {
    nc: NatsConnection;
    subjects: PositionSubject;
    database: Database;
    onMove?: (position: number) => void;
  }) {
    this.#onMove = parts.onMove ?? (() => {});
    this.#nc = parts.nc;
    this.#subjects = parts.subjects;
    this.#database = parts.database;
  }

  async start(): Promise<void> {
    if (this.#subscription !== undefined) return;
    this.#subscription = this.#nc.subscribe(this.#subjects.projectionPosition('*'), {
      callback: (error, message) => {
        if (error !== null) return;
        this.#announced(message.subject.split('.').at(-2) ?? '', message.string());
      },
    });
    this.#refreshing = setInterval(() => void this.refresh().catch(() => undefined), REFRESH_MS);
    this.#refreshing.unref();
    // Postgres may be down now: then positions come with it.
    await this.refresh().catch(() => undefined);
  }

  stop(): void {
    clearInterval(this.#refreshing);
    this.#subscription?.unsubscribe();
    this.#subscription = undefined;
  }

  of(model: ReadModel): number {
    return this.#positions.get(model) ?? 0;
  }

  /** Of the slowest read model. */
  least(): number {
    return Math.min(...this.#positions.values());
  }

  /** Asks the database. Throws `read_model_unavailable`. */
  async refresh(): Promise<number> {
    const before = new Map(this.#positions);
    const rows = await this.#database.rows<{ name: string; seq: string }>(checkpoints);
    for (const { name, seq } of rows) {
      // Behind what was known before asking: the read model was emptied or restored.
      if (Number(seq) < (before.get(name) ?? 0)) this.#positions.set(name, Number(seq));
      else this.#move(name, Number(seq));
    }
    this.#onMove(this.least());
    return this.least();
  }

  /** Resolves when all read models reflect `seq`. Throws `position_not_reached` after `timeoutMs`, `read_model_unavailable`. */
  async waitFor(seq: number, timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    let patienceMs = ANNOUNCED_WITHIN_MS;
    while (this.least() < seq) {
      const leftMs = deadline - performance.now();
      if (await this.#announcedWithin(seq, Math.min(patienceMs, leftMs))) return;
      if ((await this.refresh()) >= seq) return;
      if (performance.now() >= deadline)
        throw new TaskledgerError('position_not_reached', { position: this.least(), wanted: seq });
      patienceMs = POLL_MS;
    }
  }

  #announcedWithin(seq: number, ms: number): Promise<boolean> {
    return new Promise((resolve) => {
      const waiter = { seq, reached: () => finish(true) };
      const timer = setTimeout(() => finish(false), Math.max(0, ms));
      const finish = (reached: boolean): void => {
        clearTimeout(timer);
        this.#waiters.delete(waiter);
        resolve(reached);
      };
      this.#waiters.add(waiter);
    });
  }

  #announced(model: string, text: string): void {
    try {
      const { position } = JSON.parse(text) as { position?: unknown };
      if (typeof position === 'number') this.#move(model, position);
    } catch {
      // Not a projector's words; the next refresh tells.
    }
  }

  #move(model: string, seq: number): void {
    const known = this.#positions.get(model);
    if (known === undefined || seq <= known) return;
    this.#positions.set(model, seq);
    const least = this.least();
    // What was never asked of the database is 0, and no position.
    if (least > 0) this.#onMove(least);
    if (this.#waiters.size === 0) return;
    for (const waiter of this.#waiters) if (waiter.seq <= least) waiter.reached();
  }
}
