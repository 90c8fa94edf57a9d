import type { z } from 'zod';
import { TaskledgerError } from '../domain/errors.ts';
import type { Json } from '../domain/json.ts';
import { isName, type Priority } from '../domain/names.ts';
import type { PolicyOverride } from '../domain/policy.ts';
import type { Handler, Parsed, TypedHandler } from './handler.ts';

/** What a submission may say besides type and payload. Times are ISO 8601 instants or milliseconds since 1970. */
export interface SubmissionOptions {
  /** A UUID becomes the task id; any other text is turned into one. A repeat returns the original task. */
  readonly idempotencyKey?: string;
  /** 1 is served first, 4 last; 2 by default. */
  readonly priority?: Priority;
  /** Not before this instant. */
  readonly runAt?: string | number;
  /** Not before so many ms from the submission, instead of `runAt`. */
  readonly delayMs?: number;
  /** A task that has not ended by then goes to the dead-letter queue. */
  readonly deadlineAt?: string | number;
  /** Only workers registered for this version of the type are given the task. Default: the definition's, else 1. */
  readonly version?: number;
  /** Tasks of one tenant, type and key run one at a time, in the order of submission. */
  readonly orderingKey?: string;
  /** Tasks of one tenant, type and key run as many at a time as the type's `concurrencyKeyLimit` says: 1 by default. */
  readonly concurrencyKey?: string;
  /** Parts of the type's policy that this task replaces; durations are ms. */
  readonly policy?: PolicyOverride;
}

/** The body of a submission, over HTTP or NATS alike. */
export interface Submission<P = Json> extends SubmissionOptions {
  readonly type: string;
  readonly payload: P;
}

/** What both sides make of a definition: submissions, and the handler of a worker. */
export interface TaskDefinition<P extends z.ZodType, R extends z.ZodType> {
  readonly type: string;
  /** The submission of a task of this type. Throws `request_invalid` naming the field when the payload does not fit. */
  submission(payload: z.input<P>, options?: SubmissionOptions): Submission<z.input<P>>;
  /**
   * A handler for `createWorker({ types })`, for the definition's version and, with `{ from }`, for those since `from`.
   * A payload or result that does not fit is a failure that is not retried.
   */
  handle(handler: Handler<z.output<P>, z.input<R>>, versions?: { readonly from: number }): TypedHandler;
}

/**
 * One definition of a task type for its submitters and its workers. Throws `name_invalid` when the type is no name (1 to
 * 63 of a-z, 0-9, `_` and `-`, starting with a letter or a digit).
 *
 * @example
 * import { createWorker, defineTask } from 'taskledger';
 * import { z } from 'zod';
 *
 * const resize = defineTask({ type: 'resize', payload: z.object({ width: z.int().min(16) }) });
 * const worker = createWorker({
 *   types: { resize: resize.handle(({ payload }) => ({ halfOf: payload.width / 2 })) },
 * });
 * const task = resize.submission({ width: 640 }, { priority: 1, delayMs: 60_000 });
 * console.log(worker.id, task.payload.width);
 */
export function defineTask<
  P extends z.ZodType,
  R extends z.ZodType = z.ZodType<unknown, unknown>,
>(definition: {
  readonly type: string;
  readonly payload: P;
  readonly result?: R;
  /** Of the contract: raise it when workers that know the old one must not be given new tasks. */
  readonly version?: number;
}): TaskDefinition<P, R> {
  const { type, payload: payloadSchema, result: resultSchema, version } = definition;
  if (!isName(type)) throw new TaskledgerError('name_invalid', { field: 'type', value: type });
  const parsePayload = (payload: unknown) => parse(payloadSchema, payload, 'payload');
  return {
    type,
    submission(payload, options = {}) {
      const parsed = parsePayload(payload);
      if (!parsed.ok)
        throw new TaskledgerError('request_invalid', { field: 'payload', reason: parsed.reason });
      return { type, payload, ...(version === undefined ? {} : { version }), ...options };
    },
    handle: (handler, { from } = { from: version ?? 1 }) => ({
      type,
      versions: [from, version ?? 1],
      handle: handler as Handler<never>,
      parsePayload,
      parseResult: (result) =>
        resultSchema === undefined ? { ok: true, value: result } : parse(resultSchema, result, 'result'),
    }),
  };
}

function parse(schema: z.ZodType, value: unknown, root: string): Parsed<unknown> {
  const parsed = schema.safeParse(value);
  if (parsed.success) return { ok: true, value: parsed.data };
  const reasons = parsed.error.issues
    .slice(0, 10)
    .map((issue) => `${[root, ...issue.path.map(String)].join('.')}: ${issue.message}`);
  return { ok: false, reason: reasons.join('; ') };
}
