import { describe, expect, test } from 'vitest';
import { claim, complete, given, ingest, NOW, queue, requestCancel, start } from '../../test/support/life.ts';
import type { Command } from '../domain/commands.ts';
import type { RegisteredWorker } from '../registry/workers.ts';
import { type Fact, why } from './why.ts';

const worker = (over: Partial<RegisteredWorker> = {}): RegisteredWorker => ({
  id: 'w1',
  types: ['transcode'],
  concurrency: 4,
  host: 'h',
  pid: 1,
  version: '1',
  startedAt: NOW,
  everyMs: 3_000,
  active: [],
  seenAt: NOW,
  ...over,
});
function asked(
  life: readonly Command[],
  {
    dispatcher,
    workers = [worker()],
  }: { dispatcher?: readonly Fact[] | undefined; workers?: readonly RegisteredWorker[] } = {},
) {
  const { state, events } = given(...life);
  const last = events.at(-1);
  if (state === undefined || last === undefined) throw new Error('no task');
  return why({ state, last, dispatcher, workers, now: NOW + 1_000 });
}

describe('a waiting task', () => {
  test.each<[Fact, string]>([
    [{ kind: 'behind', count: 7, priority: 2 }, '7 tasks of its tenant and priority go first'],
    [
      { kind: 'due_later', dueAt: NOW, retry: true, delayed: 3 },
      'due at 2026-01-01T00:00:00.000Z after a failed attempt, as one of 3 of its type',
    ],
    [{ kind: 'limit', limit: 'tenant_rate', value: 5 }, 'limit tenant_rate of 5 is reached'],
    [
      { kind: 'paused', type: 'transcode', actor: 'key:1', reason: 'provider is down' },
      'type transcode is paused by key:1 (provider is down)',
    ],
    [{ kind: 'ordering_key', key: 'k', heldBy: 't1' }, 'task t1 with the same ordering key goes first'],
    [{ kind: 'workers_busy', ready: 3, running: 4 }, '4 tasks run and 3 are handed out'],
    [{ kind: 'something_new' }, 'something new'],
  ])('is told why: %j', (fact, sentence) => {
    const answer = asked([ingest()], { dispatcher: [fact] });
    expect(answer.sentence).toContain(sentence);
    expect(answer.facts.map(({ kind }) => kind)).toEqual([fact.kind, 'workers']);
  });

  test('is told when no dispatcher answers', () => {
    expect(asked([ingest()]).sentence).toBe(
      'Task waits (INGESTED): no dispatcher leads, so nothing is handed out.',
    );
  });

  test('that is queued is told that nobody takes its type; a silent worker is nobody', () => {
    const dispatcher = [{ kind: 'waiting_for_worker', ready: 1, running: 0 }];
    for (const workers of [[], [worker({ types: ['mail'] })], [worker({ seenAt: NOW - 60_000 })]])
      expect(asked([ingest(), queue()], { dispatcher, workers }).sentence).toContain(
        'no worker for transcode is registered',
      );
  });
});

test('a running task is told where it runs, since when, and when its worker was last heard of', () => {
  const life = [ingest(), queue(), claim(), start()];
  expect(asked(life).sentence).toBe(
    'Task runs: attempt 1 since 2026-01-01T00:00:00.007Z on worker w1, last heard of 1.0 s ago.',
  );
  expect(asked(life, { workers: [] }).sentence).toContain('not registered');
  expect(asked([...life, requestCancel()]).sentence).toContain('its cancellation is requested');
});

test('a task that has ended is told so', () => {
  const { sentence, facts } = asked([ingest(), queue(), claim(), start(), complete()]);
  expect(sentence).toBe('Task has ended: COMPLETED since 2026-01-01T00:00:00.007Z.');
  expect(facts).toMatchObject([{ kind: 'ended', status: 'COMPLETED' }]);
});
