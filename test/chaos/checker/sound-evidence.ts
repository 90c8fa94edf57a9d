import { apply } from '../../../projections/audit/apply.ts';
import type { Recorded } from '../../../src/domain/events.ts';
import { stepId } from '../../../src/operations/bulk-kind.ts';
import {
  cancel,
  claim,
  complete,
  deadLetter,
  fail,
  given,
  ingest,
  lose,
  NOW,
  queue,
  replay,
  requestCancel,
  start,
} from '../../support/life.ts';
import type { Evidence, Rule, Violation } from './evidence.ts';

/** Evidence of a small run that breaks no rule, and ways to plant a breach in it: each rule must find its own. */

export const LATER = NOW + 60_000;
export const idOf = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`;
export const A = idOf(1);
const B = idOf(2);
export const C = idOf(3);
export const D = idOf(4);
/** A bulk operation that replays C. */
export const REPLAY = idOf(6);

/** Four whole lives: completed at once, completed after a failure and a lost lease, dead, cancelled while running. */
const LIVES: readonly (readonly Recorded[])[] = [
  given(ingest({ taskId: A, concurrencyKey: 'gpu' }), queue(), claim(), start(), complete()).events,
  given(
    ingest({ taskId: B }),
    queue(),
    claim(),
    start(),
    fail(),
    queue({ at: LATER }),
    claim('w2'),
    lose(2),
    queue({ at: 2 * LATER }),
    claim('w3'),
    start('w3', 3),
    complete('w3', 3),
  ).events,
  given(
    ingest({ taskId: C, policy: { maxRetries: 0 }, orderingKey: 'clip' }),
    queue(),
    claim(),
    start(),
    fail(),
    deadLetter(),
    replay(),
    queue({ at: LATER }),
    claim(),
    lose(2),
    deadLetter(),
  ).events.map((recorded) => asStep(recorded, { id: REPLAY })),
  given(ingest({ taskId: D }), queue(), claim(), start(), requestCancel(), cancel()).events,
];

/** A replay that is a step of a bulk operation. */
function asStep(recorded: Recorded, bulk: { readonly id: string }): Recorded {
  const { event } = recorded;
  return event.kind === 'REPLAYED' ? { ...recorded, event: { ...event, id: stepId(bulk, event) } } : recorded;
}

/** One log of several lives, a turn each. */
function interleaved(lives: readonly (readonly Recorded[])[]): Recorded[] {
  const log: Recorded[] = [];
  for (let turn = 0; lives.some((life) => turn < life.length); turn += 1)
    for (const life of lives) {
      const recorded = life[turn];
      if (recorded !== undefined) log.push({ ...recorded, seq: log.length + 1 });
    }
  return log;
}

const heard = (log: readonly Recorded[]) =>
  log
    .filter(({ event }) => event.kind === 'COMPLETED')
    .map(({ seq, event: { taskId } }) => ({ seq, taskId }));

const SLOTS = [0, 5_000, 10_000].map((after) => NOW + after);
export const submitted = (taskId: string, over: object = {}) => ({
  op: 'submit' as const,
  at: NOW,
  tenant: 'acme',
  type: 'transcode',
  taskId,
  outcome: 'acknowledged' as const,
  ...over,
});

function evidenceOf(lives = LIVES): Evidence {
  const log = interleaved(lives);
  return {
    log,
    history: log,
    audit: apply(log),
    feeds: { reader: heard(log) },
    operations: [
      submitted(A, { seq: 1 }),
      submitted(B, { outcome: 'unknown' }),
      submitted(B),
      submitted(C, { outcome: 'unknown' }),
      submitted(idOf(8), { outcome: 'unknown' }),
      submitted(idOf(9), { outcome: 'refused' }),
      { op: 'cancel', at: NOW, tenant: 'acme', taskId: D, outcome: 'acknowledged' },
      { op: 'cancel', at: NOW, tenant: 'acme', taskId: A, outcome: 'refused' },
    ],
    limits: [
      { max: 4 },
      { type: 'transcode', eachKey: true, max: 1 },
      { tenant: 'acme', type: 'transcode', max: 4 },
      { tenant: 'other', max: 0 },
    ],
    rates: [{ tenant: 'acme', type: 'transcode', ratePerSecond: 1, burst: 5 }],
    intakeRates: [{ tenant: 'acme', ratePerSecond: 1, burst: 4, processes: 1 }],
    alone: [],
    joined: (['throttle', 'debounce'] as const).map((by) => ({
      by,
      key: 'k',
      windowMs: 1_000,
      mark: by,
      tenant: 'acme',
      type: 'transcode',
      at: NOW,
      answeredAt: NOW + 5,
      outcome: 'refused',
    })),
    pauses: [{ tenant: 'acme', from: NOW - 90_000, until: NOW - 60_000 }],
    bulksAccepted: [REPLAY],
    bulks: [{ id: REPLAY, kind: 'replay', state: 'done', moved: 1 }],
    releases: [{ mark: '-r2-', versions: { transcode: [1, 2] } }],
    live: heard(log).slice(1),
    verified: [{ projection: 'tasks', differences: [] }],
    schedules: [{ tenant: 'acme', name: 'nightly', expected: SLOTS }],
    slots: SLOTS.map((slotAt, n) => ({ tenant: 'acme', schedule: 'nightly', slotAt, taskId: idOf(n) })),
  };
}

export const sound = evidenceOf();
export const rulesOf = (violations: readonly Violation[]): Rule[] => [
  ...new Set(violations.map(({ rule }) => rule)),
];

/** A log whose events were tampered with, and everything made from it: only the tampering itself is wrong. */
export function tampered(tamper: (lives: Recorded[][]) => void): Evidence {
  const lives = LIVES.map((life) => [...life]);
  tamper(lives);
  const { log, history, audit, feeds, live } = evidenceOf(lives);
  return { ...sound, log, history, audit, feeds, live, operations: [] };
}
export const repeat = (life: Recorded[] | undefined, index: number, over: object): void => {
  const original = life?.at(index);
  if (life === undefined || original === undefined) throw new Error('nothing to repeat');
  life.push({ ...original, event: { ...original.event, ...over } as Recorded['event'] });
};
export const change = (life: Recorded[] | undefined, index: number, over: object): void => {
  const original = life?.[index];
  if (life === undefined || original === undefined) throw new Error('nothing to change');
  life[index] = { ...original, event: { ...original.event, ...over } as Recorded['event'] };
};
