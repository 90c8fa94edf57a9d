import type { EventOf, Recorded } from '../domain/events.ts';
import type { TaskState } from '../domain/task.ts';
import type { Traced } from '../observe/trace.ts';
import { type AbortCause, AttemptAborted } from './attempt-aborted.ts';
import type { Delivery } from './delivery.ts';
import type { Runnable } from './handler.ts';
import { taskKey } from './worker-entry.ts';

export const attemptKey = (task: string, attempt: number): string => `${task}#${attempt}`;

/**
 * One attempt, the record that the steps of execute-attempt.ts work on. Modes:
 *
 *   running -> aborted -> given up
 *
 * Aborting tells the handler to end; it is given up when it has not ended after the grace. The first cause of an abort
 * is the one that counts.
 */
export class Attempt {
  readonly delivery: Delivery;
  readonly queued: Recorded<EventOf<'QUEUED'>>;
  readonly runnable: Runnable;
  /** `<tenant>/<task id>` */
  readonly task: string;
  readonly number: number;
  /** attemptKey of this attempt. */
  readonly key: string;
  readonly leaseSlot: number;
  /** The state after this worker's own last event. */
  state: TaskState;
  /** Where later deliveries of the same work item are acked. */
  ackSubject: string;
  /** As the handler got it; undefined before. */
  payload: unknown;
  /** Sequence of the request to cancel, when the feed told of one. */
  cancelSeq: number | undefined;
  readonly abortGraceMs: number;
  readonly traced: Traced;
  #cause: AbortCause | undefined;
  #controller: AbortController | undefined;
  #grace: NodeJS.Timeout | undefined;
  #giveUp: (() => void) | undefined;
  #givenUp = false;

  constructor(parts: {
    delivery: Delivery;
    queued: Recorded<EventOf<'QUEUED'>>;
    runnable: Runnable;
    claimed: TaskState;
    leaseSlot: number;
    abortGraceMs: number;
    traced: Traced;
  }) {
    this.traced = parts.traced;
    this.delivery = parts.delivery;
    this.queued = parts.queued;
    this.runnable = parts.runnable;
    this.state = parts.claimed;
    this.task = taskKey(parts.claimed.tenant, parts.claimed.id);
    this.number = parts.claimed.attempt;
    this.key = attemptKey(this.task, this.number);
    this.leaseSlot = parts.leaseSlot;
    this.ackSubject = parts.delivery.ackSubject;
    this.abortGraceMs = parts.abortGraceMs;
  }

  get abortCause(): AbortCause | undefined {
    return this.#cause;
  }

  /** Made when a handler asks for it: most never do. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#cause !== undefined) this.#controller.abort(new AttemptAborted(this.#cause));
    }
    return this.#controller.signal;
  }

  abort(cause: AbortCause): void {
    if (this.#cause !== undefined) return;
    this.#cause = cause;
    this.#grace = setTimeout(() => {
      this.#givenUp = true;
      this.#giveUp?.();
    }, this.abortGraceMs);
    this.#controller?.abort(new AttemptAborted(cause));
  }

  /** Calls back when the handler is to be waited for no longer. */
  onGivenUp(callback: () => void): void {
    this.#giveUp = callback;
    if (this.#givenUp) callback();
  }

  /** The handler is no longer waited for. */
  end(): void {
    clearTimeout(this.#grace);
    this.#giveUp = undefined;
  }
}
