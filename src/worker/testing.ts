/**
 * For the tests of those who write handlers: one handler in memory, and a worker that runs what waits and stops.
 * Exported as `taskledger/testing`.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as pause } from 'node:timers/promises';
import { jetstreamManager } from '@nats-io/jetstream';
import type { Json } from '../domain/json.ts';
import { DEFAULT_PRIORITY } from '../domain/names.ts';
import { names } from '../log/subjects.ts';
import { type Logger, silentLogger } from '../observe/log.ts';
import { loadConfig } from '../platform/config.ts';
import { connectNats } from '../platform/nats.ts';
import { type AbortCause, AttemptAborted } from './attempt-aborted.ts';
import { type Handler, runnable, type TaskInfo, type TypedHandler } from './handler.ts';
import type { WorkerStats } from './hooks.ts';
import type { WorkerOptions } from './options.ts';
import { notRetryable, type Outcome, outcomeOf } from './outcome.ts';
import { Context, runHandler as run } from './run-handler.ts';
import { createWorker } from './worker.ts';

export type { Outcome } from './outcome.ts';

export interface RunOptions {
  /** What the handler is told of its task, besides sensible defaults. */
  readonly task?: Partial<TaskInfo>;
  readonly logger?: Logger;
  /** Called with every progress the handler shows. */
  readonly onProgress?: (progress: Json) => void;
  /** Aborting it aborts the handler's signal, as if for `abortCause` (default `cancelled`). */
  readonly abort?: AbortSignal;
  readonly abortCause?: AbortCause;
}

/**
 * Runs a handler once, in memory, and answers the outcome as a worker would settle it: the payload is checked and made
 * JSON first, the result as well. The handler is waited for however long it takes; what it throws is a failed outcome.
 *
 * @example
 * import { runHandler } from 'taskledger/testing';
 *
 * const outcome = await runHandler(({ payload }) => ({ greeting: `Hello, ${String(payload)}` }), 'Ada');
 * if (outcome.status === 'completed') console.log(outcome.result); // { greeting: 'Hello, Ada' }
 */
export async function runHandler<P = Json>(
  handler: Handler<P> | TypedHandler,
  payload: Json,
  options: RunOptions = {},
): Promise<Outcome> {
  const runs = runnable(handler as Handler<never> | TypedHandler);
  const parsed = runs.parsePayload(JSON.parse(JSON.stringify(payload)) as Json);
  if (!parsed.ok) return notRetryable('InvalidPayload', 'payload_invalid', parsed.reason);
  const controller = new AbortController();
  const cause = options.abortCause ?? 'cancelled';
  let aborted: AbortCause | undefined;
  const abort = () => {
    aborted = cause;
    controller.abort(new AttemptAborted(cause));
  };
  if (options.abort?.aborted) abort();
  options.abort?.addEventListener('abort', abort, { once: true });
  const context = new Context({
    task: taskInfo(options.task, typeof handler === 'function' ? 'test' : handler.type),
    payload: parsed.value,
    attempt: controller,
    logger: options.logger ?? silentLogger,
    showProgress: options.onProgress ?? (() => {}),
  });
  const ending = await run(runs, context, () => {});
  options.abort?.removeEventListener('abort', abort);
  const { maxPayloadBytes, maxPayloadDepth } = loadConfig({});
  return outcomeOf(ending, aborted, runs, { maxBytes: maxPayloadBytes, maxDepth: maxPayloadDepth });
}

const taskInfo = (over: Partial<TaskInfo> = {}, type: string): TaskInfo => ({
  id: randomUUID(),
  tenant: 'test',
  type,
  priority: DEFAULT_PRIORITY,
  round: 1,
  attempt: 1,
  submittedAt: Date.now(),
  version: 1,
  deadlineAt: undefined,
  ...over,
});

const LOOK_EVERY_MS = 20;

/**
 * Starts a worker, lets it run every work item of its types that is queued, and stops it. Answers what it did. Tasks
 * that wait for a retry or a time are not waited for. Throws when work is left after `timeoutMs` (default 30 000).
 *
 * @example
 * import { drainOnce } from 'taskledger/testing';
 *
 * const { completed, failed } = await drainOnce({ types: { greet: () => 'Hello' }, timeoutMs: 10_000 });
 * console.log(completed, failed);
 */
export async function drainOnce(
  options: WorkerOptions & { readonly timeoutMs?: number },
): Promise<WorkerStats> {
  const { timeoutMs = 30_000, ...own } = options;
  const worker = createWorker(own);
  const config = loadConfig();
  const nats = typeof own.nats === 'string' ? { natsUrl: own.nats } : own.nats;
  const shared = nats !== undefined && 'subscribe' in nats ? nats : undefined;
  const nc = shared ?? (await connectNats({ ...config, ...(nats as Partial<typeof config>) }, 'drain once'));
  const ours = names(own.prefix ?? config.prefix);
  try {
    await worker.start();
    const jsm = await jetstreamManager(nc, { checkAPI: false });
    const left = async (): Promise<number> => {
      const infos = await Promise.all(
        Object.keys(own.types).map((type) => jsm.consumers.info(ours.streams.tasks, ours.workConsumer(type))),
      );
      return infos.reduce((sum, { num_pending, num_ack_pending }) => sum + num_pending + num_ack_pending, 0);
    };
    const giveUpAt = Date.now() + timeoutMs;
    for (let waiting = await left(); waiting > 0 || worker.stats().running > 0; waiting = await left()) {
      if (Date.now() > giveUpAt) throw new Error(`${waiting} work items are left after ${timeoutMs} ms`);
      await pause(LOOK_EVERY_MS);
    }
  } finally {
    await worker.stop();
    if (shared === undefined) await nc.close();
  }
  return worker.stats();
}
