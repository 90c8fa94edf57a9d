import {
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  circuitBreaker,
  handleWhen,
} from 'cockatiel';
import type pg from 'pg';
import type { TaskledgerError } from '../domain/errors.ts';
import type { Logger } from '../observe/log.ts';
import { settings } from '../platform/config.ts';
import { closeIdle, isDataError, postgresReason, readModelUnavailable } from '../platform/postgres.ts';
import { checkpoints, type Statement } from './sql.ts';
import type { Lag } from './staleness.ts';

/** So many failures in a row open the circuit. */
const FAILURES_TO_OPEN = 3;
/** `query_canceled`: one statement took too long, which says nothing about the server. */
const STATEMENT_TIMEOUT = '57014';

/**
 * Reads from Postgres behind a circuit breaker. From the opening of the circuit on nobody waits for Postgres: whoever asks
 * is refused at once, and at most begins a look whether it is back.
 */
export class Database {
  readonly #pool: pg.Pool;
  readonly #breaker: CircuitBreakerPolicy;
  readonly #lag: () => Promise<Lag | undefined>;
  /** Each refuses a question that waits for its answer. */
  readonly #waiting = new Set<(error: unknown) => void>();
  #reason = 'unknown';
  /** From the first opening of the circuit until an answer: each look in between opens it again. */
  #out = false;
  /** Monotonic ms of the next look. */
  #lookAt = 0;

  /** `lag`: told to those who are refused. */
  constructor({
    pool,
    logger,
    lookEveryMs = settings.databaseLookEveryMs.fallback,
    lag = async () => undefined,
  }: {
    pool: pg.Pool;
    logger: Logger;
    lookEveryMs?: number | undefined;
    lag?: () => Promise<Lag | undefined>;
  }) {
    this.#pool = pool;
    this.#lag = lag;
    this.#breaker = circuitBreaker(handleWhen(isOutage), {
      // When to look is decided here: the breaker would go by the wall clock, which may be put back.
      halfOpenAfter: Number.NEGATIVE_INFINITY,
      breaker: new ConsecutiveBreaker(FAILURES_TO_OPEN),
    });
    this.#breaker.onBreak((cause) => {
      if ('error' in cause) this.#reason = postgresReason(cause.error);
      this.#lookAt = performance.now() + lookEveryMs;
      if (this.#out) return;
      this.#out = true;
      logger.error({ reason: this.#reason }, 'Postgres does not answer; queries are refused until it does');
      for (const refuse of this.#waiting) refuse(new Error(this.#reason));
      closeIdle(pool);
    });
    this.#breaker.onReset(() => {
      this.#out = false;
      logger.info({}, 'Postgres answers again');
    });
  }

  /** Throws `read_model_unavailable`. */
  async rows<Row extends object>(statement: Statement): Promise<Row[]> {
    if (this.#breaker.state !== CircuitState.Closed) {
      this.#look();
      throw await this.#unavailable(new Error(this.#reason));
    }
    try {
      const asked = this.#breaker.execute(() => this.#pool.query<Row>(statement));
      return (await this.#unlessOut(asked)).rows;
    } catch (error) {
      throw await this.#unavailable(error);
    }
  }

  /**
   * Finds out whether Postgres is back, with read models: it may answer before they are made. The breaker hears what comes
   * of it, and nobody waits for it.
   */
  #look(): void {
    if (this.#breaker.state !== CircuitState.Open || performance.now() < this.#lookAt) return;
    this.#breaker.execute(() => this.#pool.query(checkpoints)).catch(() => undefined);
  }

  /** The answer, or a refusal when the circuit opens before it comes. */
  #unlessOut<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#waiting.add(reject);
      answer.then(resolve, reject).finally(() => this.#waiting.delete(reject));
    });
  }

  async #unavailable(error: unknown): Promise<TaskledgerError> {
    return readModelUnavailable(error, await this.#lag());
  }
}

const isOutage = (error: unknown): boolean =>
  !isDataError(error) && (error as { code?: unknown }).code !== STATEMENT_TIMEOUT;
