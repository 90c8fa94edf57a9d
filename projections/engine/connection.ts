import pg from 'pg';
import { TaskledgerError } from '../../src/domain/errors.ts';
import type { Logger } from '../../src/observe/log.ts';
import { areTablesGone, postgresReason } from '../../src/platform/postgres.ts';
import { Superseded } from './checkpoint.ts';
import { isAboutEvents } from './transaction.ts';

const FIRST_PAUSE_MS = 50;
const MAX_PAUSE_MS = 2_000;

/**
 * `synchronous_commit = off` is safe here and saves a flush a transaction: the checkpoint is in the same transaction,
 * so what a crash of Postgres takes away is read from the log again. The keepalives free the checkpoint's row lock when
 * this machine vanishes without a word.
 */
const SESSION = `set synchronous_commit = off;
  set idle_in_transaction_session_timeout = '30s';
  set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3`;

export interface Outage {
  /** Monotonic ms. */
  readonly since: number;
  readonly reason: string;
}

/**
 * The projector's one connection, which comes back over outages. Owned by the projector's loop: one `run` at a time.
 */
export class Connection {
  readonly #pool: pg.Pool;
  readonly #logger: Logger;
  readonly #stopping: AbortSignal;
  readonly #lag: () => number;
  readonly #session: string;
  readonly #makeTables: (() => Promise<boolean>) | undefined;
  #client: pg.PoolClient | undefined;
  #outage: Outage | undefined;

  /**
   * `schema`: the only one in which tables are looked for; without it, the database's own search path. `makeTables` is asked
   * when tables are gone; true when it has made some.
   */
  constructor(parts: {
    pool: pg.Pool;
    logger: Logger;
    stopping: AbortSignal;
    lag: () => number;
    schema?: string;
    makeTables?: (() => Promise<boolean>) | undefined;
  }) {
    this.#pool = parts.pool;
    this.#logger = parts.logger;
    this.#stopping = parts.stopping;
    this.#lag = parts.lag;
    this.#makeTables = parts.makeTables;
    this.#session =
      parts.schema === undefined
        ? SESSION
        : `${SESSION}; set search_path = ${pg.escapeIdentifier(parts.schema)}`;
  }

  outage(): Outage | undefined {
    return this.#outage;
  }

  /**
   * Runs `work`, again after every failure that may pass, for ever; `retried` tells it that an earlier try may or may
   * not have committed. Throws Superseded, also when the tables had to be made anew, what the events are to blame for, and `shutting_down`.
   */
  async run<T>(work: (client: pg.PoolClient, retried: boolean) => Promise<T>): Promise<T> {
    for (let tries = 0; ; tries++) {
      if (this.#stopping.aborted) throw new TaskledgerError('shutting_down');
      try {
        const result = await work(await this.#connected(), tries > 0);
        this.#recovered();
        return result;
      } catch (error) {
        if (error instanceof Superseded || isAboutEvents(error)) throw error;
        this.close();
        if (areTablesGone(error) && (await this.#madeTables()))
          throw new Superseded('the tables were gone and are made anew');
        this.#failed(error);
        await pause(Math.min(MAX_PAUSE_MS, FIRST_PAUSE_MS * 2 ** tries), this.#stopping);
      }
    }
  }

  /** The connection is thrown away: its session settings are not for others. */
  close(): void {
    this.#client?.release(true);
    this.#client = undefined;
  }

  /** Those that cannot be made yet, as their schema is gone too, are tried again with the work. */
  async #madeTables(): Promise<boolean> {
    try {
      if ((await this.#makeTables?.()) !== true) return false;
    } catch (error) {
      this.#logger.debug({ error }, 'the tables cannot be made yet');
      return false;
    }
    this.#logger.warn(
      {},
      'the tables of the read models were gone; they are made anew, and filled from the log',
    );
    return true;
  }

  async #connected(): Promise<pg.PoolClient> {
    if (this.#client !== undefined) return this.#client;
    const client = await this.#pool.connect();
    try {
      await client.query(this.#session);
    } catch (error) {
      client.release(true);
      throw error;
    }
    this.#client = client;
    return client;
  }

  /** The outage lasts, whatever the reason is by now. */
  #failed(error: unknown): void {
    const reason = postgresReason(error);
    const { since } = this.#outage ?? {};
    this.#outage = { since: since ?? performance.now(), reason };
    if (since !== undefined) return;
    this.#logger.error(
      { reason, lag: this.#lag() },
      'Postgres cannot be written; projections wait and try again',
    );
  }

  #recovered(): void {
    if (this.#outage === undefined) return;
    const { since } = this.#outage;
    this.#outage = undefined;
    this.#logger.info(
      { outageMs: Math.round(performance.now() - since), lag: this.#lag() },
      'Postgres can be written again',
    );
  }
}

/** Resolves after `ms`, or at once when the signal fires. */
export function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const done = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, ms);
    signal.addEventListener('abort', done, { once: true });
  });
}
