import type { Json } from '../domain/json.ts';
import type { Priority } from '../domain/names.ts';
import type { Logger } from '../observe/log.ts';

/** What a handler is told of its task. */
export interface TaskInfo {
  readonly id: string;
  readonly tenant: string;
  readonly type: string;
  readonly priority: Priority;
  /** 1 for the first submission; every replay starts a new round. */
  readonly round: number;
  /** Number of this attempt over all rounds, from 1. */
  readonly attempt: number;
  /** Milliseconds since 1970. */
  readonly submittedAt: number;
  /** Milliseconds since 1970; the attempt is aborted then. */
  readonly deadlineAt: number | undefined;
}

export interface HandlerContext<P = Json> {
  readonly task: TaskInfo;
  readonly payload: P;
  readonly attempt: number;
  /**
   * Aborts when the attempt should end: its reason is an AttemptAborted that says why. A handler that ignores it is
   * given up after `abortGraceMs`, and what it does later is ignored.
   */
  readonly signal: AbortSignal;
  /** Lines carry the task id, the tenant, the type and the attempt. */
  readonly log: Logger;
  /**
   * The same for every attempt of this task, whatever the round or the worker, and for no other task: pass it to
   * whatever can deduplicate side effects, since a crash between an effect and its event leaves doubt.
   */
  readonly idempotencyKey: string;
  /** Shows JSON progress in the worker registry. Leases are renewed without it; it extends nothing. */
  readonly heartbeat: (progress?: Json) => void;
}

/**
 * Returns a JSON result, or nothing. A throw is a failed attempt; NotRetryable makes it the last one.
 * A method, so that a handler may say which payload it expects: `(context: HandlerContext<Clip>) => ...`. Nobody checks
 * that it comes; `defineTask` does.
 */
export type Handler<P = Json, R = unknown> = {
  handle(context: HandlerContext<P>): R | Promise<R>;
}['handle'];

/** A handler with the checks of its task's definition; `defineTask(...).handle(fn)` makes one. */
export interface TypedHandler {
  readonly type: string;
  readonly handle: Handler<never>;
  parsePayload(payload: Json): Parsed<unknown>;
  parseResult(result: unknown): Parsed<unknown>;
}

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: string };

/** What the worker runs for a type. */
export interface Runnable {
  run(context: HandlerContext<never>): unknown;
  parsePayload(payload: Json): Parsed<unknown>;
  parseResult(result: unknown): Parsed<unknown>;
}

const anything = <T>(value: T): Parsed<T> => ({ ok: true, value });

export const runnable = (handler: Handler<never> | TypedHandler): Runnable =>
  typeof handler === 'function'
    ? { run: handler, parsePayload: anything, parseResult: anything }
    : {
        run: handler.handle,
        parsePayload: (payload) => handler.parsePayload(payload),
        parseResult: (result) => handler.parseResult(result),
      };
