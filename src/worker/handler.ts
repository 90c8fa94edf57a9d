import type { Json } from '../domain/json.ts';
import type { Priority } from '../domain/names.ts';
import type { Logger } from '../observe/log.ts';

/** What a handler is told of its task. */
export interface TaskInfo {
  /** A UUID in lower case, unique in its tenant. */
  readonly id: string;
  readonly tenant: string;
  readonly type: string;
  /** 1 is served first, 4 last. */
  readonly priority: Priority;
  /** 1 for the first submission; every replay starts a new round. */
  readonly round: number;
  /** Number of this attempt over all rounds, from 1. */
  readonly attempt: number;
  /** Milliseconds since 1970. */
  readonly submittedAt: number;
  /** What the task was submitted for; 1 unless it said otherwise. */
  readonly version: number;
  /** Milliseconds since 1970; the attempt is aborted then. */
  readonly deadlineAt: number | undefined;
}

/** What a handler gets: one object, made for each attempt. */
export interface HandlerContext<P = Json> {
  readonly task: TaskInfo;
  /** As it was submitted; of a defined task what its schema makes of it. */
  readonly payload: P;
  /** The same as `task.attempt`. */
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
 * Returns a JSON result, or nothing. A throw is a failed attempt; NotRetryable makes it the last one. It may be called
 * again for the same task: after a failure, and after a crash also when it had ended well.
 *
 * A method, so that a handler may say which payload it expects: `(context: HandlerContext<Clip>) => ...`. Nobody checks
 * that it comes; `defineTask` does.
 *
 * @example
 * import { type Handler, NotRetryable } from 'taskledger';
 *
 * const fetchPage: Handler<{ url: string }> = async ({ payload, signal, heartbeat }) => {
 *   const response = await fetch(payload.url, { signal });
 *   if (response.status === 404) throw new NotRetryable('no such page', { code: 'page_missing' });
 *   heartbeat({ status: response.status });
 *   return { bytes: (await response.text()).length };
 * };
 * export default fetchPage;
 */
export type Handler<P = Json, R = unknown> = {
  handle(context: HandlerContext<P>): R | Promise<R>;
}['handle'];

/** A handler with the checks of its task's definition; `defineTask(...).handle(fn)` makes one. */
export interface TypedHandler {
  readonly type: string;
  readonly handle: Handler<never>;
  /** Least and greatest version of the type that it runs; version 1 when absent. */
  readonly versions?: VersionRange;
  parsePayload(payload: Json): Parsed<unknown>;
  parseResult(result: unknown): Parsed<unknown>;
}

export type Parsed<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: string };

/** Least and greatest version of a type, both included. */
export type VersionRange = readonly [least: number, greatest: number];

/** A handler for a range of versions of its type. */
export interface VersionedHandler {
  readonly handler: Handler | TypedHandler;
  readonly versions: VersionRange;
}

/** What the worker runs for a type. */
export interface Runnable {
  readonly versions: VersionRange;
  run(context: HandlerContext<never>): unknown;
  parsePayload(payload: Json): Parsed<unknown>;
  parseResult(result: unknown): Parsed<unknown>;
}

const anything = <T>(value: T): Parsed<T> => ({ ok: true, value });

const FIRST_ONLY: VersionRange = [1, 1];

export function runnable(given: Handler<never> | TypedHandler | VersionedHandler): Runnable {
  if (typeof given === 'function')
    return { versions: FIRST_ONLY, run: given, parsePayload: anything, parseResult: anything };
  if ('handler' in given)
    return { ...runnable(given.handler as Handler<never> | TypedHandler), versions: given.versions };
  return {
    versions: given.versions ?? FIRST_ONLY,
    run: given.handle,
    parsePayload: (payload) => given.parsePayload(payload),
    parseResult: (result) => given.parseResult(result),
  };
}
