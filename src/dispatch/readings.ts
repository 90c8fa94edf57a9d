import type { Reading } from '../observe/signals.ts';
import type { DispatcherStats } from './dispatcher.ts';

/** The figures of a dispatcher for its metrics. */
export function dispatcherReadings(stats: DispatcherStats): Reading[] {
  const { queued, deadLettered, cancelled, carried, conflicts, failures } = stats.appends;
  const appends = {
    queued,
    dead_lettered: deadLettered,
    cancelled,
    carried,
    conflict: conflicts,
    failure: failures,
  };
  return [
    { signal: 'dispatcherLeads', value: stats.phase === 'leading' ? 1 : 0 },
    { signal: 'dispatcherPosition', value: stats.position },
    { signal: 'dispatcherTasks', value: stats.liveTasks },
    ...Object.entries(stats.types).flatMap(
      ([type, { waiting, delayed, ready, running, claimed }]): Reading[] => [
        ...Object.entries({ waiting, delayed, ready, running }).map(
          ([state, value]): Reading => ({ signal: 'dispatcherLine', labels: { type, state }, value }),
        ),
        { signal: 'dispatcherClaims', labels: { type }, value: claimed },
      ],
    ),
    ...Object.entries(appends).map(
      ([outcome, value]): Reading => ({ signal: 'dispatcherAppends', labels: { outcome }, value }),
    ),
    ...Object.entries(stats.lateness).map(
      ([within, value]): Reading => ({ signal: 'dispatcherReleased', labels: { within }, value }),
    ),
    ...Object.entries(stats.alarm).map(
      ([outcome, value]): Reading => ({ signal: 'dispatcherAlarm', labels: { outcome }, value }),
    ),
  ];
}
