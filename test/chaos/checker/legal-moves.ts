import type { EventKind, Status } from '../../../src/domain/events.ts';

const WAITING = ['INGESTED', 'QUEUED', 'FAILED', 'RETRY_CLAIMED', 'REPLAYED'] as const;
const RUNNING = ['CLAIMED', 'PROCESSING'] as const;

/**
 * The statuses that each kind of event may leave: the table on top of `task.ts`, written down a second time on purpose,
 * so that a mistake in `decide` cannot hide in a copy of itself. null: the task does not exist yet.
 */
export const LEGAL_FROM: Readonly<Record<EventKind, readonly (Status | null)[]>> = {
  INGESTED: [null],
  REJECTED: [null],
  QUEUED: ['INGESTED', 'QUEUED', 'FAILED', 'RETRY_CLAIMED', 'REPLAYED'],
  CLAIMED: ['QUEUED'],
  PROCESSING: ['CLAIMED'],
  COMPLETED: ['PROCESSING'],
  FAILED: ['PROCESSING'],
  RETRY_CLAIMED: RUNNING,
  DEAD_LETTER: WAITING,
  REPLAYED: ['DEAD_LETTER', 'CANCELLED'],
  CANCEL_REQUESTED: RUNNING,
  CANCELLED: [...WAITING, ...RUNNING],
  DISCARDED: ['DEAD_LETTER'],
  RESCHEDULED: ['INGESTED', 'FAILED', 'RETRY_CLAIMED', 'REPLAYED'],
  CARRIED: [...WAITING, ...RUNNING],
};
