import {
  BrokenCircuitError,
  type CircuitBreakerPolicy,
  ConsecutiveBreaker,
  circuitBreaker,
  handleWhen,
} from 'cockatiel';
import type pg from 'pg';
import type { Logger } from '../observe/log.ts';
import { isDataError, postgresReason, readModelUnavailable } from '../platform/postgres.ts';
import type { Statement } from './sql.ts';

/** So many failures in a row open the circuit; then one question at a time finds out whether Postgres is back. */
const FAILURES_TO_OPEN = 3;
const HALF_OPEN_AFTER_MS = 1_000;
/** `query_canceled`: one statement took too long, which says nothing about the server. */
const STATEMENT_TIMEOUT = '57014';

/** Reads from Postgres behind a circuit breaker: while it is dead, questions are refused at once instead of waiting. */
export class Database {
  readonly #pool: pg.Pool;
  readonly #breaker: CircuitBreakerPolicy;
  #reason = 'unknown';
  /** From the first opening of the circuit until an answer: each try in between opens it again. */
  #out = false;

  constructor(pool: pg.Pool, logger: Logger) {
    this.#pool = pool;
    this.#breaker = circuitBreaker(handleWhen(isOutage), {
      halfOpenAfter: HALF_OPEN_AFTER_MS,
      breaker: new ConsecutiveBreaker(FAILURES_TO_OPEN),
    });
    this.#breaker.onBreak(() => {
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
    try {
      return await this.#breaker.execute(async () => (await this.#pool.query<Row>(statement)).rows);
    } catch (error) {
      if (error instanceof BrokenCircuitError) throw readModelUnavailable(new Error(this.#reason));
      this.#reason = postgresReason(error);
      throw readModelUnavailable(error);
    }
  }
}

const isOutage = (error: unknown): boolean =>
  !isDataError(error) && (error as { code?: unknown }).code !== STATEMENT_TIMEOUT;
