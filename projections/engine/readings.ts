import type { Reading } from '../../src/observe/signals.ts';
import type { ProjectorStats } from './projector.ts';

/** The figures of a projector for its metrics. */
export const projectorReadings = (stats: ProjectorStats): Reading[] => [
  { signal: 'projectorLag', value: stats.lag },
  ...Object.entries(stats.positions).map(
    ([projection, value]): Reading => ({ signal: 'projectorPosition', labels: { projection }, value }),
  ),
  { signal: 'projectorRate', value: stats.eventsPerSecond },
  { signal: 'projectorBatches', value: stats.batches },
  { signal: 'projectorPoisoned', value: stats.poisoned },
  { signal: 'projectorOutage', value: stats.outage === undefined ? 0 : 1 },
  { signal: 'projectorStopped', value: Object.keys(stats.stopped).length },
];
