import { describe, expect, test } from 'vitest';
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
  worker,
} from '../../support/life.ts';
import { randomLives } from '../../support/random-lives.ts';
import { check, rulesChecked, violationsText } from './check.ts';
import { type Evidence, RULES, type Rule, type Violation } from './evidence.ts';
import { REACHES_WITHIN_MS } from './pause-rule.ts';

const LATER = NOW + 60_000;
const idOf = (n: number): string => `00000000-0000-4000-8000-00000000000${n}`;
const A = idOf(1);
const B = idOf(2);
const C = idOf(3);
const D = idOf(4);
/** A bulk operation that replays C. */
const REPLAY = idOf(6);

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
const submitted = (taskId: string, over: object = {}) => ({
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

const sound = evidenceOf();
const rulesOf = (violations: readonly Violation[]): Rule[] => [
  ...new Set(violations.map(({ rule }) => rule)),
];

/** A log whose events were tampered with, and everything made from it: only the tampering itself is wrong. */
function tampered(tamper: (lives: Recorded[][]) => void): Evidence {
  const lives = LIVES.map((life) => [...life]);
  tamper(lives);
  const { log, history, audit, feeds, live } = evidenceOf(lives);
  return { ...sound, log, history, audit, feeds, live, operations: [] };
}
const repeat = (life: Recorded[] | undefined, index: number, over: object): void => {
  const original = life?.at(index);
  if (life === undefined || original === undefined) throw new Error('nothing to repeat');
  life.push({ ...original, event: { ...original.event, ...over } as Recorded['event'] });
};
const change = (life: Recorded[] | undefined, index: number, over: object): void => {
  const original = life?.[index];
  if (life === undefined || original === undefined) throw new Error('nothing to change');
  life[index] = { ...original, event: { ...original.event, ...over } as Recorded['event'] };
};

test('sound evidence shows nothing, and every rule was asked', () => {
  expect(check(sound)).toEqual([]);
  expect(rulesChecked(sound)).toEqual(Object.keys(RULES));
  const none = { rates: [], intakeRates: [], joined: [] };
  const nothing = {
    ...sound,
    ...none,
    limits: [],
    schedules: [],
    feeds: {},
    pauses: [],
    bulks: [],
    releases: [],
  };
  expect(rulesChecked({ ...nothing, log: [], operations: [], live: [], verified: [] })).toEqual([
    'acknowledged',
    'refused',
    'terminal',
    'completions',
    'legal',
    'attempts',
    'history',
    'audit',
  ]);
});

test('whatever the domain decides is legal and within its policy', () => {
  for (let seed = 1; seed <= 8; seed += 1) {
    const log = randomLives({ seed, tasks: 20, events: 500 });
    const copies = { history: log, audit: apply(log), feeds: {}, live: [] };
    const found = check({ ...sound, log, ...copies, operations: [], bulksAccepted: [], bulks: [] });
    // Random lives are cut off, and do not wait for their due times, or for each other.
    const serious = found.filter(({ rule, message }) => rule !== 'terminal' && !message.includes('is due'));
    const shared: readonly Rule[] = ['limits', 'slots', 'debounce'];
    expect(serious.filter(({ rule }) => !shared.includes(rule))).toEqual([]);
  }
});

describe('planted in what clients were told', () => {
  const planted = (...operations: Evidence['operations']) => check({ ...sound, operations });

  test.each<[string, Rule, Evidence['operations'][number]]>([
    ['a lost submission', 'acknowledged', submitted(idOf(7))],
    ['an answer with another place', 'acknowledged', submitted(A, { seq: 3 })],
    ['an answer for another type', 'acknowledged', submitted(A, { type: 'thumbnail' })],
    ['a refusal that was stored', 'refused', submitted(A, { outcome: 'refused' })],
    [
      'a lost cancellation',
      'commands',
      { op: 'cancel', at: NOW, tenant: 'acme', taskId: A, outcome: 'acknowledged' },
    ],
    [
      'a lost change',
      'commands',
      { op: 'reschedule', at: NOW, tenant: 'acme', taskId: D, outcome: 'acknowledged' },
    ],
    [
      'a lost discard',
      'commands',
      { op: 'discard', at: NOW, tenant: 'acme', taskId: C, outcome: 'acknowledged' },
    ],
    ["a submission of another tenant's id", 'acknowledged', submitted(A, { tenant: 'zeta' })],
  ])('%s', (_name, rule, operation) => {
    expect(rulesOf(planted(operation))).toEqual([rule]);
  });

  test('a refusal beside an answer that never came says nothing', () => {
    expect(planted(submitted(A, { outcome: 'refused' }), submitted(A, { outcome: 'unknown' }))).toEqual([]);
  });
});

describe('planted in the log', () => {
  const found = (tamper: (lives: Recorded[][]) => void) => check(tampered(tamper));

  test('a second completion of a task, accepted', () => {
    const violations = found(([a]) => repeat(a, 4, {}));
    expect(rulesOf(violations).sort()).toEqual(['completions', 'legal']);
    expect(violations[0]?.witness).toHaveLength(6);
  });
  test('a task that never ends', () => {
    const violations = found(([a]) => a?.pop());
    expect(rulesOf(violations)).toEqual(['terminal']);
    expect(violations[0]?.message).toContain('PROCESSING');
  });
  test('an event that leaves a status the task has not', () => {
    expect(rulesOf(found(([a]) => a?.splice(2, 1)))).toEqual(['legal']);
  });
  test('a move that no event may make, though it fits the fold', () => {
    expect(rulesOf(found(([a]) => change(a, 2, { kind: 'COMPLETED', attempt: 0 })))).toContain('legal');
    expect(rulesOf(found(([a]) => a?.splice(3, 2, ...dead(a))))).toEqual(['legal']);
  });
  test('a completion by a worker whose lease was lost', () => {
    const violations = found(([, b]) => change(b, 11, { actor: worker('w2') }));
    expect(rulesOf(violations)).toEqual(['legal']);
    expect(violations[0]?.message).toContain('w3 holds the attempt');
  });
  test('a lost lease that names somebody else', () => {
    expect(
      rulesOf(found(([, b]) => change(b, 7, { data: { ...b?.[7]?.event.data, lostWorker: 'w9' } }))),
    ).toEqual(['legal']);
  });
  test('an attempt that was not counted', () => {
    expect(rulesOf(found(([, b]) => change(b, 6, { attempt: 1 })))).toEqual(['legal']);
  });
  test('a round that was not begun', () => {
    expect(rulesOf(found(([, , c]) => change(c, 6, { round: 1 })))).toEqual(['legal']);
  });
  test('a retry before its backoff is over', () => {
    const violations = found(([, b]) => {
      const early = b?.[5];
      if (early !== undefined) b?.splice(5, 1, { ...early, storedAt: NOW });
    });
    expect(rulesOf(violations)).toEqual(['attempts']);
  });
  test('a delayed task before its time', () => {
    expect(rulesOf(found(([a]) => change(a, 0, { data: { ...a?.[0]?.event.data, runAt: LATER } })))).toEqual([
      'attempts',
    ]);
  });
  test('an attempt more than the policy allows', () => {
    const once = { data: { payload: 1, policy: { maxRetries: 1 } } };
    const violations = found(([, b]) => {
      change(b, 0, once);
      for (const [index, recorded] of (b ?? []).entries()) {
        if (recorded.event.kind !== 'QUEUED') continue;
        const facts = { ...recorded.event.data.facts, policy: { maxRetries: 1 } };
        change(b, index, { data: { ...recorded.event.data, facts } });
      }
    });
    expect(rulesOf(violations)).toEqual(['attempts']);
    expect(violations.map(({ message }) => message)).toContain(
      'attempt 3 of the round, but the policy allows 2',
    );
  });
  test('a retry after a delay that the policy does not give', () => {
    const data = { error: { name: 'Error', message: 'x' }, next: { retryInMs: 3 } };
    expect(rulesOf(found(([, b]) => change(b, 4, { data })))).toEqual(['attempts']);
  });
  test('poison after fewer lost attempts than the policy bears', () => {
    expect(rulesOf(found(([, , c]) => change(c, 10, { data: { reason: 'poison' } })))).toEqual(['attempts']);
  });
  test('a death for want of retries that were left', () => {
    const policy = { maxRetries: 5 };
    const violations = found(([, , c]) => {
      change(c, 0, { data: { payload: 1, policy } });
      for (const index of [1, 7]) {
        const event = c?.[index]?.event;
        if (event?.kind !== 'QUEUED') throw new Error('not the QUEUED that was meant');
        change(c, index, { data: { ...event.data, facts: { ...event.data.facts, policy } } });
      }
    });
    expect(rulesOf(violations)).toEqual(['attempts']);
  });
});

const dead = (life: readonly Recorded[]): Recorded[] => {
  const last = life.at(-1);
  if (last === undefined) return [];
  const event = { ...last.event, kind: 'DEAD_LETTER', from: 'CLAIMED', data: { reason: 'deadline' } };
  return [{ ...last, event: event as Recorded['event'] }];
};

describe('planted in what tasks share', () => {
  const keyed = (key: object) => (life: Recorded[]) =>
    change(life, 0, { data: { ...life[0]?.event.data, ...key } });
  const found = (tamper: (lives: Recorded[][]) => void) => check(tampered(tamper));

  test('two attempts of a concurrency key at once', () => {
    const violations = found((lives) => lives.forEach(keyed({ concurrencyKey: 'gpu' })));
    expect(rulesOf(violations)).toEqual(['limits']);
    expect(violations[0]?.message).toContain('the key acme/transcode/gpu');
  });
  test('two tasks of an ordering key at once', () => {
    const violations = found((lives) => lives.forEach(keyed({ orderingKey: 'clip' })));
    expect(rulesOf(violations)).toEqual(['order']);
    expect(violations[0]?.witness.length).toBeLessThanOrEqual(4);
  });
  test('a task of an ordering key that overtakes one that waits for its retry', () => {
    const violations = found((lives) => {
      const [a, b] = lives;
      lives.slice(0, 2).forEach(keyed({ orderingKey: 'reel' }));
      // One after the other, but B is served first.
      if (a !== undefined && b !== undefined)
        lives.splice(0, 2, [...b.slice(0, 1), ...a.slice(0, 1), ...b.slice(1), ...a.slice(1)]);
    });
    expect(rulesOf(violations)).toEqual([]);
    const overtaking = found((lives) => {
      const [a, b] = lives;
      lives.slice(0, 2).forEach(keyed({ orderingKey: 'reel' }));
      if (a !== undefined && b !== undefined) lives.splice(0, 2, [...b.slice(0, 5), ...a, ...b.slice(5)]);
    });
    expect(rulesOf(overtaking)).toEqual(['order']);
    expect(overtaking[0]?.message).toContain('was before it');
  });
  test('a version that the worker does not know', () => {
    const violations = found(([a]) => change(a, 0, { data: { payload: 1, version: 2 } }));
    expect(rulesOf(violations)).toEqual(['versions']);
    expect(
      rulesOf(
        found(([a]) => {
          change(a, 0, { data: { payload: 1, version: 2 } });
          for (const index of [2, 3, 4]) change(a, index, { actor: worker('w1-r2-77') });
        }),
      ),
    ).toEqual([]);
  });
  test('a task that goes on after it was discarded', () => {
    const violations = found(([, , c]) => {
      const died = c?.[5];
      if (died === undefined) return;
      c?.splice(6, 0, {
        ...died,
        event: {
          ...died.event,
          kind: 'DISCARDED',
          from: 'DEAD_LETTER',
          data: { reason: 'x' },
        } as Recorded['event'],
      });
    });
    expect(rulesOf(violations)).toEqual(['legal']);
  });
  test('a retry of a last attempt that nobody pardoned, and a pardon that nothing calls for', () => {
    expect(
      rulesOf(
        found(([, b]) => change(b, 7, { data: { ...b?.[7]?.event.data, next: { final: 'retries' } } })),
      ),
    ).toEqual(['attempts']);
    const pardoned = found(([a]) =>
      change(a, 1, {
        data: { ...a?.[1]?.event.data, facts: { submittedAt: NOW, attemptsBefore: 0, lost: 0, pardoned: 1 } },
      }),
    );
    expect(rulesOf(pardoned)).toEqual(['attempts']);
  });
  test('a death of a deadline that has not passed', () => {
    expect(rulesOf(found(([, , c]) => change(c, 10, { data: { reason: 'deadline' } })))).toEqual([
      'attempts',
    ]);
  });
});

describe('planted beside the log', () => {
  const [slot] = sound.slots;
  const first = sound.audit[0];
  const feed = sound.feeds['reader'] ?? [];
  if (slot === undefined || first === undefined) throw new Error('the sound evidence is empty');

  test.each<[string, Rule, Partial<Evidence>]>([
    ['more running attempts than the limit', 'limits', { limits: [{ max: 3 }] }],
    [
      "more than a tenant's limit of a type",
      'limits',
      { limits: [{ tenant: 'acme', type: 'transcode', max: 2 }] },
    ],
    [
      'a task that was queued in a pause',
      'pauses',
      { pauses: [{ tenant: 'acme', from: NOW - 2 * REACHES_WITHIN_MS, until: LATER }] },
    ],
    ['an operation that was forgotten', 'bulks', { bulksAccepted: [REPLAY, idOf(5)] }],
    [
      'an operation that does not end',
      'bulks',
      { bulks: [{ id: REPLAY, kind: 'replay', state: 'running', moved: 1 }] },
    ],
    [
      'a step that is not in the log',
      'bulks',
      { bulks: [{ id: REPLAY, kind: 'replay', state: 'done', moved: 2 }] },
    ],
    [
      'a step that nobody counted',
      'bulks',
      { bulks: [{ id: REPLAY, kind: 'replay', state: 'done', moved: 0 }] },
    ],
    [
      'a read model that differs',
      'projections',
      { verified: [{ projection: 'queues', differences: ['queue_counts: 1 changed'] }] },
    ],
    ['a live completion that never was', 'live', { live: [{ seq: 999, taskId: A }] }],
    ['a missed slot', 'slots', { slots: sound.slots.slice(1) }],
    ['a slot fired twice', 'slots', { slots: [...sound.slots, { ...slot, taskId: C }] }],
    [
      'an unexpected slot fired twice',
      'slots',
      { slots: [...sound.slots, ...twice({ ...slot, slotAt: NOW - 5 })] },
    ],
    ['an event that HISTORY lacks', 'history', { history: sound.log.slice(1) }],
    ['an event that HISTORY has twice', 'history', { history: [...sound.log, ...sound.log.slice(-1)] }],
    ['an event that the audit lacks', 'audit', { audit: sound.audit.slice(0, -1) }],
    ['an audit row twice', 'audit', { audit: [first, ...sound.audit] }],
    [
      'an audit row that says something else',
      'audit',
      { audit: [{ ...first, actorId: 'x' }, ...sound.audit.slice(1)] },
    ],
    ['an audit row of no event', 'audit', { audit: [...sound.audit, { ...first, seq: 999 }] }],
    ['a completion that the feed lacks', 'feeds', { feeds: { reader: feed.slice(1) } }],
    ['a completion told twice', 'feeds', { feeds: { reader: [...feed, ...feed.slice(-1)] } }],
    ['completions out of order', 'feeds', { feeds: { reader: feed.toReversed() } }],
    ['a completion that never was', 'feeds', { feeds: { reader: [...feed, { seq: 999, taskId: A }] } }],
  ])('%s', (_name, rule, over) => {
    const violations = check({ ...sound, ...over });
    expect(rulesOf(violations)).toEqual([rule]);
    expect(violations[0]?.witness.length).toBeGreaterThan(0);
  });
});

const twice = <T>(item: T): T[] => [item, item];

test('the shortest history comes first, and the text shows it', () => {
  const violations = check({
    ...sound,
    operations: [...sound.operations, submitted(idOf(7))],
    audit: sound.audit.slice(1),
    limits: [{ max: 1 }],
  });
  expect(violations.map(({ witness }) => witness.length)).toEqual(
    violations.map(({ witness }) => witness.length).toSorted((one, other) => one - other),
  );
  const text = violationsText(violations);
  expect(text).toContain('1 x not so: every acknowledged submission is in the log');
  expect(text).toContain(`client 2026-01-01T00:00:00.000Z submit acme ${idOf(7)}: acknowledged`);
  expect(text).toContain('1 x not so: no concurrency limit is exceeded');
});
