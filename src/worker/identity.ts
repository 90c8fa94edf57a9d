import { hostname } from 'node:os';
import type { WorkerPlan } from './options.ts';
import type { WorkerIdentity } from './worker-entry.ts';

/** Often enough that a third of an ack-wait of silence is noticed, and cheap for thousands of workers. */
const ENTRY_EVERY_MS = 3_000;

export const identityOf = (
  { id, runnables, total }: Pick<WorkerPlan, 'id' | 'runnables' | 'total'>,
  leastAckWaitMs: number,
): WorkerIdentity => ({
  id,
  types: [...runnables.keys()],
  concurrency: total,
  host: hostname(),
  pid: process.pid,
  version: VERSION,
  startedAt: Date.now(),
  everyMs: Math.min(ENTRY_EVERY_MS, Math.ceil(leastAckWaitMs / 3)),
});

/** Of the worker SDK; equal to the package's, which a test checks. */
export const VERSION = '0.1.0';
