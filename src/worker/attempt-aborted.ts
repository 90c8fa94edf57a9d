/** Why a running attempt is told to end. */
export type AbortCause = 'timeout' | 'deadline' | 'cancelled' | 'superseded' | 'lease_expired' | 'shutdown';

const MESSAGES: Record<AbortCause, string> = {
  timeout: 'The attempt ran longer than its timeout allows',
  deadline: "The task's deadline has passed",
  cancelled: 'Somebody asked to cancel the task',
  superseded: 'Another worker has taken the task over',
  lease_expired: 'The lease could not be renewed in time',
  shutdown: 'The worker is stopping',
};

/**
 * The reason of a handler's abort signal. Named TimeoutError or AbortError, as the platform names them; its `reason` tells
 * a handler whether anybody still waits for what it does.
 *
 * @example
 * import { AttemptAborted } from 'taskledger';
 *
 * export const isCancelled = (signal: AbortSignal): boolean =>
 *   signal.reason instanceof AttemptAborted && signal.reason.reason === 'cancelled';
 */
export class AttemptAborted extends Error {
  override readonly name: string;
  readonly reason: AbortCause;
  /** Stable, for `policy.notRetryable` and for grouping. */
  readonly code: string;

  constructor(reason: AbortCause) {
    super(MESSAGES[reason]);
    this.name = reason === 'timeout' || reason === 'deadline' ? 'TimeoutError' : 'AbortError';
    this.reason = reason;
    this.code = `attempt_${reason}`;
  }
}
