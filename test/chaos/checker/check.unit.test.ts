import { expect, test } from 'vitest';
import { apply } from '../../../projections/audit/apply.ts';
import { randomLives } from '../../support/random-lives.ts';
import { check, rulesChecked, violationsText } from './check.ts';
import { RULES, type Rule } from './evidence.ts';
import { idOf, sound, submitted } from './sound-evidence.ts';

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
