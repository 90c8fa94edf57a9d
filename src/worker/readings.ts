import type { Reading } from '../observe/signals.ts';
import type { WorkerStats } from './hooks.ts';

const OUTCOMES = ['completed', 'failed', 'cancelled', 'released', 'lost', 'spooled'] as const;

/** The figures of a worker for its metrics. */
export const workerReadings = (stats: WorkerStats, degraded: boolean): Reading[] => [
  { signal: 'workerRunning', value: stats.running },
  { signal: 'workerClaimed', value: stats.claimed },
  ...OUTCOMES.map(
    (outcome): Reading => ({ signal: 'workerAttempts', labels: { outcome }, value: stats[outcome] }),
  ),
  { signal: 'workerHandedBack', value: stats.handedBack },
  { signal: 'workerReclaimed', value: stats.reclaimed },
  { signal: 'workerInherited', value: stats.inherited },
  { signal: 'workerStray', value: stats.strayRejections },
  { signal: 'workerDegraded', value: degraded ? 1 : 0 },
];
