import { hostname } from 'node:os';
import { FIRST_VERSION } from '../domain/events.ts';
import type { VersionRange } from './handler.ts';
import type { WorkerPlan } from './options.ts';
import type { WorkerIdentity } from './worker-entry.ts';

/** Often enough that a third of an ack-wait of silence is noticed, and cheap for thousands of workers. */
const ENTRY_EVERY_MS = 3_000;

export const identityOf = (
  { id, version, runnables, total }: Pick<WorkerPlan, 'id' | 'version' | 'runnables' | 'total'>,
  leastAckWaitMs: number,
): WorkerIdentity => ({
  id,
  types: [...runnables.keys()],
  versions: Object.fromEntries(
    [...runnables].flatMap(([type, { versions }]) => (isFirstOnly(versions) ? [] : [[type, versions]])),
  ),
  concurrency: total,
  host: hostname(),
  pid: process.pid,
  version: VERSION,
  ...(version === undefined ? {} : { workerVersion: version }),
  startedAt: Date.now(),
  everyMs: Math.min(ENTRY_EVERY_MS, Math.ceil(leastAckWaitMs / 3)),
});

const isFirstOnly = ([least, greatest]: VersionRange): boolean =>
  least === FIRST_VERSION && greatest === FIRST_VERSION;

/** Of the worker SDK; equal to the package's, which a test checks. */
export const VERSION = '0.1.0';
