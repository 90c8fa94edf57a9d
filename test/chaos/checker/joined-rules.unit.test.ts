import { describe, expect, test } from 'vitest';
import { decide } from '../../../src/domain/decide.ts';
import type { Recorded } from '../../../src/domain/events.ts';
import { fold, TERMINAL } from '../../../src/domain/task.ts';
import { Debouncer, type Place } from '../../../src/intake/debounce.ts';
import { submitThrottled } from '../../../src/intake/throttle.ts';
import { claim, complete, ingest, NOW, queue, requestCancel, start } from '../../support/life.ts';
import { memoryLog } from '../../support/memory-log.ts';
import { randomOf } from '../../support/random-lives.ts';
import { checkDebounces } from './debounce-rule.ts';
import type { JoinedSubmission, Violation } from './evidence.ts';
import { livesOf } from './lives.ts';
import { checkThrottles } from './throttle-rule.ts';

const WINDOW_MS = 1_000;
type By = JoinedSubmission['by'];

/** Two processes of intake over one log in memory, and whoever hands tasks out. */
function intakeWorld() {
  const log = { ...memoryLog(), bounds: async () => ({ firstSeq: 1, lastSeq: log.events.length }) };
  const stored = new Map<string, Place>();
  const places = {
    async change(cell: string, build: (current: Place | undefined) => Place) {
      const place = build(stored.get(cell));
      stored.set(cell, place);
      return place;
    },
  };
  const debouncers = [0, 1].map(() => new Debouncer({ log, places }));
  const joined: JoinedSubmission[] = [];
  let made = 0;
  const nextId = (): string => `00000000-0000-4000-8000-${(made++).toString(16).padStart(12, '0')}`;
  const world = { now: NOW, log, joined, submit, send, move };

  async function take(
    by: By,
    process: number,
    { key, mark, sentAt }: { key: string; mark: string; sentAt?: number },
  ) {
    const command = ingest({ eventId: nextId(), taskId: nextId(), at: world.now, payload: { mark } });
    const submittedAt = sentAt ?? world.now;
    const window = { key, windowMs: WINDOW_MS, maxWaitMs: 3 * WINDOW_MS };
    return by === 'throttle'
      ? submitThrottled(log, command, { ...window, kind: by, now: submittedAt })
      : (debouncers[process] as Debouncer).submit({
          command,
          window: { ...window, kind: by },
          submittedAt,
          once: sentAt !== undefined,
        });
  }
  const note = (by: By, key: string, mark: string, told: Partial<JoinedSubmission>): void =>
    void joined.push({
      by,
      key,
      mark,
      windowMs: WINDOW_MS,
      tenant: 'acme',
      type: 'transcode',
      at: world.now,
      answeredAt: world.now,
      outcome: 'acknowledged',
      ...told,
    });
  async function submit(by: By, key = 'k', process = 0): Promise<void> {
    const mark = nextId();
    const { now: at } = world;
    const outcome = await take(by, process, { key, mark });
    if (!outcome.ok) throw outcome.error;
    note(by, key, mark, { at, taskId: outcome.id, seq: outcome.seq });
  }
  /** A message: stored now, and taken when the answer is called. */
  function send(by: By, key = 'k', process = 0): () => Promise<void> {
    const mark = nextId();
    const sentAt = world.now;
    note(by, key, mark, {});
    return async () => void (await take(by, process, { key, mark, sentAt }));
  }
  /** The next step of a task that has not ended: it is handed out, runs and ends, or is cancelled. */
  async function move(dice: () => number): Promise<void> {
    const ids = [...new Set(log.events.map(({ event }) => event.taskId))];
    const open = ids.flatMap((id) => {
      const state = fold(log.events.filter(({ event }) => event.taskId === id));
      return state === undefined || TERMINAL.has(state.status) ? [] : [state];
    });
    const state = open[Math.floor(dice() * open.length)];
    if (state === undefined) return;
    const steps = { INGESTED: queue(), QUEUED: claim(), CLAIMED: start(), PROCESSING: complete() };
    const step = dice() < 0.1 ? requestCancel() : steps[state.status as keyof typeof steps];
    const decided = decide(state, { ...step, eventId: nextId(), at: world.now });
    if (decided.ok) await log.append(decided.value, state.seq);
  }
  return world;
}

const found = (events: readonly Recorded[], joined: readonly JoinedSubmission[]): Violation[] => [
  ...checkThrottles(joined, livesOf(events)),
  ...checkDebounces(joined, events, livesOf(events)),
];

test('what intake makes of throttle and debounce keys is never found, whoever takes it in whatever order', async () => {
  for (let seed = 1; seed <= 60; seed += 1) {
    const world = intakeWorld();
    const dice = randomOf(seed);
    const messages: (() => Promise<void>)[] = [];
    for (let turn = 0; turn < 80; turn += 1) {
      world.now += Math.floor(dice() * 700);
      const by: By = dice() < 0.5 ? 'throttle' : 'debounce';
      const key = dice() < 0.7 ? 'k' : 'l';
      const process = Math.floor(dice() * 2);
      const act = dice();
      if (act < 0.3) await world.submit(by, key, process);
      else if (act < 0.45) await Promise.all([0, 1, 1].map((one) => world.submit(by, key, one)));
      else if (act < 0.6) messages.push(world.send(by, key, process));
      else if (act < 0.75) await messages.splice(Math.floor(dice() * messages.length), 1)[0]?.();
      else await world.move(dice);
    }
    for (const message of messages) await message();
    expect(found(world.log.events, world.joined)).toEqual([]);
  }
});

/** Three submissions of a key, the last one by message, the task of the first two handed out before it. */
async function lived(by: By) {
  const world = intakeWorld();
  await world.submit(by);
  world.now += 10;
  await world.submit(by, 'k', 1);
  await world.move(() => 0.5);
  world.now += 5_000;
  await world.send(by)();
  return { events: [...world.log.events], joined: [...world.joined] };
}
type Lived = Awaited<ReturnType<typeof lived>>;

const change = <T>(list: T[], index: number, to: (one: T) => T): void => {
  const one = list[index];
  if (one === undefined) throw new Error('nothing to change');
  list[index] = to(one);
};
const withData = (recorded: Recorded, data: object): Recorded => ({
  ...recorded,
  event: { ...recorded.event, data: { ...recorded.event.data, ...data } } as Recorded['event'],
});
const withId = (recorded: Recorded, taskId: string): Recorded => ({
  ...recorded,
  event: { ...recorded.event, taskId },
});
const OTHER = '00000000-0000-4000-8000-0000000000ff';

describe('planted', () => {
  test.each<[string, By, (lived: Lived) => void, string]>([
    [
      'a second task in one window',
      'throttle',
      ({ events, joined }) => {
        const [first] = events;
        if (first === undefined) throw new Error('nothing was made');
        events.push(withData(withId({ ...first, seq: 99 }, OTHER), { payload: { mark: joined[1]?.mark } }));
      },
      'is the second of its key and window',
    ],
    [
      'a task of no submission',
      'throttle',
      ({ events }) => change(events, 0, (one) => withData(one, { payload: { mark: 'x' } })),
      'made by no submission',
    ],
    [
      'a task of a refused submission',
      'throttle',
      ({ joined }) => change(joined, 0, (one) => ({ ...one, outcome: 'refused' as const })),
      'but a refused one',
    ],
    [
      'an answer that names a task which is not there',
      'throttle',
      ({ joined }) => change(joined, 1, (one) => ({ ...one, taskId: OTHER })),
      'is not in the log',
    ],
    [
      'an answer that names the task of another window',
      'throttle',
      ({ joined }) => change(joined, 1, (one) => ({ ...one, at: NOW + 9_000, answeredAt: NOW + 9_000 })),
      'not of the key and window',
    ],
    [
      'an answer with another place',
      'throttle',
      ({ joined }) => change(joined, 1, (one) => ({ ...one, seq: 77 })),
      'was said to begin at 77',
    ],
    [
      'a message that no task stands for',
      'throttle',
      ({ events }) => void events.pop(),
      'has no task in its window',
    ],
    [
      'a second task of the key that waits',
      'debounce',
      ({ events }) => void events.splice(2, 1),
      'begins while another one of its key waits',
    ],
    [
      'a payload that nobody sent',
      'debounce',
      ({ events }) => change(events, 1, (one) => withData(one, { payload: { mark: 'x' } })),
      'has the payload of no submission',
    ],
    [
      'an older payload over a newer one',
      'debounce',
      ({ joined }) => change(joined, 1, (one) => ({ ...one, at: NOW - 9_000, answeredAt: NOW - 8_000 })),
      'has an older payload than one before it',
    ],
    [
      'another payload than the last handed out',
      'debounce',
      ({ events, joined }) =>
        change(events, 2, (one) => withData(one, { payload: { mark: joined[0]?.mark } })),
      'not its last',
    ],
    [
      'a task that is put off beyond its longest wait',
      'debounce',
      ({ events }) => change(events, 1, (one) => withData(one, { dueAt: NOW + 60_000 })),
      'beyond its longest wait',
    ],
    [
      'an answer that names a task of another key',
      'debounce',
      ({ joined }) => change(joined, 1, (one) => ({ ...one, taskId: OTHER })),
      'is not of the key',
    ],
    [
      'an answer that names an event which brought nothing',
      'debounce',
      ({ joined }) => change(joined, 1, (one) => ({ ...one, seq: 3 })),
      'brought it no payload',
    ],
    [
      'an answer that names an event from before it was sent',
      'debounce',
      ({ joined }) =>
        change(joined, 1, (one) => ({ ...one, seq: 1, at: NOW + 3_000, answeredAt: NOW + 3_000 })),
      'brought an older payload than the submission',
    ],
    [
      'a message that is forgotten',
      'debounce',
      ({ events }) => void events.pop(),
      'has no task with its payload or a later one',
    ],
  ])('%s (%#)', async (_name, by, tamper, says) => {
    const evidence = await lived(by);
    expect(found(evidence.events, evidence.joined)).toEqual([]);
    tamper(evidence);
    const violations = found(evidence.events, evidence.joined);
    expect(violations.map(({ message }) => message).join('\n')).toContain(says);
    for (const { rule, witness } of violations) {
      expect(rule).toBe(by);
      expect(witness.length).toBeGreaterThan(0);
    }
  });
});
