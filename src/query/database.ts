import {
  BrokenCircuitError,
  type CircuitBreakerPolicy,
  CircuitState,
  ConsecutiveBreaker,
  circuitBreaker,
  handleWhen,
} from 'cockatiel';
import type pg from 'pg';
import type { TaskledgerError } from '../domain/errors.ts';
import type { Logger } from '../observe/log.ts';
import { isDataError, postgresReason, readModelUnavailable } from '../platform/postgres.ts';
import type { Statement } from './sql.ts';
import type { Lag } from './staleness.ts';

/** So many failures in a row open the circuit; then one question at a time finds out whether Postgres is back. */
const FAILURES_TO_OPEN = 3;
const HALF_OPEN_AFTER_MS = 1_000;
/** `query_canceled`: one statement took too long, which says nothing about the server. */
const STATEMENT_TIMEOUT = '57014';

/** Reads from Postgres behind a circuit breaker: while it is dead, questions are refused at once instead of waiting. */
export class Database {
  readonly #pool: pg.Pool;
  readonly #breaker: CircuitBreakerPolicy;
  readonly #lag: () => Promise<Lag | undefined>;
  #reason = 'unknown';
  /** From the first opening of the circuit until an answer: each try in between opens it again. */
  #out = false;
  /** Monotonic ms. */
  #openUntil = 0;
  /** The breaker measures by the wall clock, which may be put back: what it measures against is never or at once. */
  readonly #untilHalfOpen = {
    duration: 0,
    next: () => this.#untilHalfOpen,
  };

  /** `lag`: told to those who are refused. */
  constructor({
    pool,
    logger,
    lag = async () => undefined,
  }: {
    pool: pg.Pool;
    logger: Logger;
    lag?: () => Promise<Lag | undefined>;
  }) {
    this.#pool = pool;
    this.#lag = lag;
    this.#breaker = circuitBreaker(handleWhen(isOutage), {
      halfOpenAfter: { next: () => this.#untilHalfOpen },
      breaker: new ConsecutiveBreaker(FAILURES_TO_OPEN),
    });
    this.#breaker.onBreak(() => {
      this.#openUntil = performance.now() + HALF_OPEN_AFTER_MS;
      if (this.#out) return;
      this.#out = true;
      logger.error({ reason: this.#reason }, 'Postgres does not answer; queries are refused until it does');
    });
    this.#breaker.onReset(() => {
      this.#out = false;
      logger.info({}, 'Postgres answers again');
    });
  }

  /** Throws `read_model_unavailable`. */
  async rows<Row extends object>(statement: Statement): Promise<Row[]> {
    // Whoever finds out whether Postgres is back may wait for long; nobody waits with it.
    if (this.#breaker.state === CircuitState.HalfOpen) throw await this.#unavailable(new Error(this.#reason));
    this.#untilHalfOpen.duration =
      performance.now() < this.#openUntil ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
    try {
      return await this.#breaker.execute(async () => (await this.#pool.query<Row>(statement)).rows);
    } catch (error) {
      if (error instanceof BrokenCircuitError) throw await this.#unavailable(new Error(this.#reason));
      this.#reason = postgresReason(error);
      throw await this.#unavailable(error);
    }
  }

  async #unavailable(error: unknown): Promise<TaskledgerError> {
    return readModelUnavailable(error, await this.#lag());
  }
}

const isOutage = (error: unknown): boolean =>
  !isDataError(error) && (error as { code?: unknown }).code !== STATEMENT_TIMEOUT;
