import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { projectorReadings } from '../../projections/engine/readings.ts';
import { OBSERVE_README, section } from '../../test/support/readme.ts';
import { dispatcherReadings } from '../dispatch/readings.ts';
import { retentionReadings } from '../retention/watch.ts';
import { newCounters } from '../worker/hooks.ts';
import { workerReadings } from '../worker/readings.ts';
import { createMetrics } from './metrics.ts';
import { type Reading, signals, signalsTable } from './signals.ts';

const everything = (): Reading[] => [
  ...dispatcherReadings({
    phase: 'leading',
    position: 7,
    liveTasks: 3,
    cachedPayloadBytes: 0,
    types: {
      mail: {
        waiting: 5,
        delayed: 0,
        ready: 2,
        intents: 0,
        running: 1,
        window: 64,
        claimed: 9,
        claimsPerSecond: 1,
      },
    },
    appends: { underWay: 0, queued: 4, deadLettered: 0, cancelled: 0, carried: 0, conflicts: 1, failures: 0 },
    alarm: { set: 1, failed: 0, rung: 1, missed: 0 },
    lateness: { 1: 2, more: 0 },
  }),
  ...projectorReadings({
    mode: 'leading',
    lag: 2,
    positions: { tasks: 5 },
    eventsPerSecond: 10,
    batches: 3,
    outage: undefined,
    stopped: {},
    poisoned: 0,
  }),
  ...retentionReadings({ findings: [], lag: 4, dangers: [] }),
  ...workerReadings({ running: 1, ...newCounters(), completed: 6 }, false),
];

test('every metric that is told is in the table of signals, with its labels, and the other way round', async () => {
  const metrics = createMetrics(everything);
  metrics.request('GET', '/v1/tasks', 200, 3);
  metrics.submission('http', 'accepted', 2);
  metrics.watchUnserved(() => [{ type: 'mail', version: 1, waiting: 3 }]);
  const text = await metrics.text();
  const told = [...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name, kind]) => `${name} ${kind}`);
  expect(told.sort()).toEqual(
    Object.values(signals)
      .map(({ name, kind }) => `${name} ${kind}`)
      .sort(),
  );
  for (const { name, labels } of Object.values(signals)) {
    const sample = new RegExp(`^${name}(?:_count)?(?:\\{(.*)\\})? `, 'm').exec(text);
    const shown = [...(sample?.[1] ?? '').matchAll(/(\w+)="/g)].map(([, label]) => label);
    expect(shown, name).toEqual(labels);
  }
});

test('figures are told as they are at that moment, each time anew', async () => {
  const metrics = createMetrics(everything);
  for (let times = 0; times < 2; times++) {
    const text = await metrics.text();
    expect(text).toContain('taskledger_dispatcher_tasks{type="mail",state="waiting"} 5');
    expect(text).toContain('taskledger_dispatcher_claims_total{type="mail"} 9');
    expect(text).toContain('taskledger_worker_attempts_total{outcome="completed"} 6');
  }
});

test('the README shows the table', async () => {
  expect(section(await readFile(OBSERVE_README, 'utf8'), 'signals')).toBe(signalsTable());
});
