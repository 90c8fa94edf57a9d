import { TaskledgerError } from '../domain/errors.ts';
import { settings } from './config.ts';

const RETRY_MS = 500;
/** The longest interval that a timer can have. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export interface PatienceOptions {
  /** How long all waits together may take: TASKLEDGER_START_TIMEOUT_MS when it is absent. */
  readonly forMs?: number;
  /** Ends every wait at once. */
  readonly signal?: AbortSignal;
  /** Told of each failure that is put up with. */
  readonly onFailure?: (error: TaskledgerError) => void;
}

/**
 * How long a start may wait for its servers, over all of its steps together. What a step does between two waits, such as
 * reading the log, does not count: it takes as long as it takes.
 *
 * It is for one start, whose steps wait one after the other.
 */
export class Patience {
  readonly signal: AbortSignal;
  readonly #forMs: number;
  readonly #onFailure: (error: TaskledgerError) => void;
  #leftMs: number;

  constructor({
    forMs = settings.startTimeoutMs.fallback,
    signal = new AbortController().signal,
    onFailure = () => {},
  }: PatienceOptions = {}) {
    this.#forMs = forMs;
    this.#leftMs = forMs;
    this.signal = signal;
    this.#onFailure = onFailure;
  }

  /** Throws `shutting_down` once it has been told to stop. */
  throwIfStopped(): void {
    if (this.signal.aborted) throw new TaskledgerError('shutting_down');
  }

  /**
   * Does the work, again after each failure that may pass (`retryable`). Throws `shutting_down` at once when it is told to
   * stop, and when the patience is at its end the last failure, which then says what was waited for and how long. Work
   * that is under way is left to itself; `late` hears what came of it. A try has half a second, however little is left.
   */
  async waitFor<T>(
    what: string,
    work: () => Promise<T>,
    { unanswered = noAnswer, late }: WaitOptions<T> = {},
  ): Promise<T> {
    const startedAt = performance.now();
    const until = startedAt + this.#leftMs;
    let last: TaskledgerError | undefined;
    try {
      for (;;) {
        this.throwIfStopped();
        const doing = work();
        try {
          return await this.#raced(doing, Math.max(RETRY_MS, until - performance.now()));
        } catch (error) {
          if (error instanceof NotWaitedFor) {
            doing.then(late, () => undefined);
            this.throwIfStopped();
            throw this.#atEnd(what, last ?? unanswered(), startedAt);
          }
          const passing = error instanceof TaskledgerError && error.retryable;
          if (!passing || error.code === 'shutting_down') throw error;
          last = error;
          if (performance.now() + RETRY_MS > until) throw this.#atEnd(what, error, startedAt);
          this.#onFailure(error);
        }
        await this.#raced(new Promise(() => {}), RETRY_MS).catch(() => undefined);
      }
    } finally {
      this.#leftMs = Math.max(0, until - performance.now());
    }
  }

  /** Work that takes as long as it takes: only a stop ends the waiting, with `shutting_down`. */
  async unlessStopped<T>(work: Promise<T>): Promise<T> {
    try {
      return await this.#raced(work, Number.POSITIVE_INFINITY);
    } catch (error) {
      if (error instanceof NotWaitedFor) throw new TaskledgerError('shutting_down');
      throw error;
    }
  }

  #atEnd(what: string, last: TaskledgerError, startedAt: number): TaskledgerError {
    const inAllMs = this.#forMs - this.#leftMs + performance.now() - startedAt;
    const reason = `${String(last.details['reason'] ?? last.message)}; waited ${seconds(inAllMs)} s for the servers in all, now for ${what}`;
    return new TaskledgerError(last.code, { ...last.details, reason }, { cause: last });
  }

  /** The outcome of the work; NotWaitedFor when the stop or the end of the time comes first. */
  #raced<T>(work: Promise<T>, ms: number): Promise<T> {
    const { signal } = this;
    return new Promise((resolve, reject) => {
      const end = (finish: () => void): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', giveUp);
        finish();
      };
      const giveUp = (): void => end(() => reject(new NotWaitedFor()));
      const timer = ms < MAX_TIMER_MS ? setTimeout(giveUp, ms) : undefined;
      signal.addEventListener('abort', giveUp);
      work.then(
        (answer) => end(() => resolve(answer)),
        (error: unknown) => end(() => reject(error)),
      );
      if (signal.aborted) giveUp();
    });
  }
}

interface WaitOptions<T> {
  /** The error when the time is over and there was no failure, only silence. */
  readonly unanswered?: () => TaskledgerError;
  /** Takes what comes after nobody waits for it any more. */
  readonly late?: (answer: T) => void;
}

class NotWaitedFor extends Error {}

const noAnswer = (): TaskledgerError => new TaskledgerError('log_unavailable', { reason: 'no answer' });
const seconds = (ms: number): string => (ms / 1_000).toFixed(1);

const SAY_EVERY_MS = 10_000;

/** Calls `say` at once, and then at most every 10 s, however often it is asked. */
export function sparingly<T>(say: (what: T) => void): (what: T) => void {
  let saidAt = Number.NEGATIVE_INFINITY;
  return (what) => {
    const now = performance.now();
    if (now - saidAt < SAY_EVERY_MS) return;
    saidAt = now;
    say(what);
  };
}
