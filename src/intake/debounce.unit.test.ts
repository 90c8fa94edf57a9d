import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { memoryLog } from '../../test/support/memory-log.ts';
import type { Command } from '../domain/commands.ts';
import { decide } from '../domain/decide.ts';
import { TaskledgerError } from '../domain/errors.ts';
import { fold, type TaskState } from '../domain/task.ts';
import type { Cells } from '../registry/cells.ts';
import { type DebounceParts, Debouncer, type Place } from './debounce.ts';

const NOW = 1_800_000_000_000;
const actor = { kind: 'intake', id: 'i' } as const;
const dispatcher = { kind: 'dispatcher', id: 'd' } as const;
type Meta = Pick<Command, 'eventId' | 'at' | 'actor'>;
let made = 0;
const nextId = (): string => {
  made += 1;
  return `00000000-0000-4000-8000-${made.toString(16).padStart(12, '0')}`;
};

/** The bucket in memory; `down` times a change is not stored. */
function memoryPlaces() {
  const stored = new Map<string, Place>();
  const bucket = {
    down: 0,
    async change(key: string, build: (current: Place | undefined) => Place): Promise<Place> {
      const current = stored.get(key);
      const place = build(current);
      if (current !== undefined && bucket.down > 0) {
        bucket.down -= 1;
        throw new TaskledgerError('log_unavailable', { reason: 'down' });
      }
      stored.set(key, place);
      return place;
    },
  };
  return bucket satisfies Cells<Place> & { down: number };
}

function setup(processes = 2, wrap: (parts: DebounceParts) => DebounceParts = (parts) => parts) {
  const log = { ...memoryLog(), bounds: async () => ({ firstSeq: 1, lastSeq: log.events.length }) };
  const places = memoryPlaces();
  const debouncers = Array.from({ length: processes }, () => new Debouncer(wrap({ log, places })));
  const submit = (process: number, payload: number, { submittedAt = NOW, once = false } = {}) =>
    (debouncers[process % processes] as Debouncer).submit({
      command: {
        kind: 'ingest',
        eventId: nextId(),
        at: NOW,
        actor,
        taskId: nextId(),
        tenant: 'acme',
        type: 'index',
        payload,
        priority: 2,
      },
      window: { kind: 'debounce', key: 'doc 1', windowMs: 1_000, maxWaitMs: 5_000 },
      submittedAt,
      once,
    });
  const tasks = (): TaskState[] =>
    [...new Set(log.events.map(({ event }) => event.taskId))].flatMap(
      (id) => fold(log.events.filter(({ event }) => event.taskId === id)) ?? [],
    );
  const move = async (
    from: TaskState['status'],
    build: (meta: Meta, attempt: number) => Command,
  ): Promise<void> => {
    const state = tasks().findLast(({ status }) => status === from);
    if (state === undefined) return;
    const meta = { eventId: nextId(), at: state.dueAt ?? NOW, actor: dispatcher };
    const decided = decide(state, build(meta, state.attempt));
    if (decided.ok) await log.append(decided.value, state.seq);
  };
  const queue = (meta: Meta): Command => ({ ...meta, kind: 'queue', inlinePayload: true });
  /** What a dispatcher does when the time has come. */
  const handOut = (): Promise<void> => move('INGESTED', queue);
  /** What was handed out last fails, and is handed out again. */
  const retry = async (): Promise<void> => {
    const error = { name: 'Error', message: 'bad' };
    await move('QUEUED', (meta) => ({ ...meta, kind: 'claim' }));
    await move('CLAIMED', (meta, attempt) => ({ ...meta, kind: 'start', attempt }));
    await move('PROCESSING', (meta, attempt) => ({ ...meta, kind: 'fail', attempt, error, dice: 0 }));
    await move('FAILED', queue);
  };
  const waiting = () => tasks().filter(({ status }) => status === 'INGESTED');
  return { log, places, submit, handOut, retry, tasks, waiting };
}

describe('a debounce key', () => {
  test('has one waiting task, with the last payload, until it is handed out; then the next one begins', async () => {
    const { submit, handOut, tasks } = setup();
    const first = await submit(0, 1);
    const second = await submit(1, 2, { submittedAt: NOW + 400 });
    expect(first).toMatchObject({ ok: true, replayed: false });
    expect(second).toMatchObject({ ok: true, deduplicated: 'debounce', replayed: false });
    expect(second.ok && first.ok && second.id === first.id).toBe(true);
    expect(tasks()).toMatchObject([{ payload: 2, dueAt: NOW + 1_400 }]);
    await handOut();
    const third = await submit(0, 3);
    expect(third.ok && first.ok && third.id !== first.id).toBe(true);
    expect(tasks()).toMatchObject([
      { status: 'QUEUED', payload: 2 },
      { status: 'INGESTED', payload: 3 },
    ]);
  });

  test('appends as one what comes while one is under way, and answers all with its task', async () => {
    const { log, submit, tasks } = setup(1);
    const outcomes = await Promise.all(Array.from({ length: 500 }, (_, n) => submit(0, n)));
    expect(new Set(outcomes.map((outcome) => outcome.ok && outcome.id)).size).toBe(1);
    expect(tasks()).toMatchObject([{ payload: 499 }]);
    expect(log.events).toHaveLength(2);
  });

  test('has at most one task waiting, in whatever order processes, dispatcher, lost answers and crashes fall', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(
          fc.oneof(
            { weight: 4, arbitrary: fc.record({ kind: fc.constant('submit' as const), process: fc.nat(2) }) },
            {
              weight: 2,
              arbitrary: fc.record({ kind: fc.constant('hand out' as const), process: fc.nat(2) }),
            },
            { weight: 1, arbitrary: fc.record({ kind: fc.constant('retry' as const), process: fc.nat(2) }) },
            {
              weight: 1,
              arbitrary: fc.record({ kind: fc.constant('unheard' as const), process: fc.nat(2) }),
            },
            { weight: 1, arbitrary: fc.record({ kind: fc.constant('crash' as const), process: fc.nat(2) }) },
          ),
          { maxLength: 14 },
        ),
        async (scheduler, steps) => {
          const world = setup(3, ({ log, places }) => ({
            log: {
              append: scheduler.scheduleFunction(log.append),
              readLasts: scheduler.scheduleFunction(log.readLasts),
              bounds: log.bounds,
            },
            places: { change: scheduler.scheduleFunction(places.change.bind(places)) },
          }));
          const work = steps.map(({ kind, process }, n) => {
            if (kind === 'submit') return world.submit(process, n, { submittedAt: NOW + n });
            if (kind === 'hand out') return scheduler.schedule(Promise.resolve()).then(() => world.handOut());
            if (kind === 'retry') return scheduler.schedule(Promise.resolve()).then(() => world.retry());
            return scheduler.schedule(Promise.resolve()).then(() => {
              // The process is gone before it has heard, or before it has kept where the chain has come to.
              if (kind === 'unheard') world.log.fault('INGESTED', ['unheard']);
              else world.places.down += 1;
            });
          });
          await scheduler.waitFor(Promise.all(work));
          const waitingIds = new Set<string>();
          for (const { event } of world.log.events) {
            if (event.kind === 'INGESTED') waitingIds.add(event.taskId);
            if (event.kind === 'QUEUED') waitingIds.delete(event.taskId);
            expect(waitingIds.size).toBeLessThanOrEqual(1);
          }
          const ids = new Set(world.log.events.map(({ event }) => event.taskId));
          for (const outcome of await Promise.all(work)) if (outcome?.ok) expect(ids).toContain(outcome.id);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('goes on past a task of its chain that was handed out again, whoever began it', async () => {
    const { submit, handOut, retry, waiting } = setup();
    await submit(0, 1);
    // The other process knows the first task as the place where the chain has come to.
    await submit(1, 2);
    await handOut();
    await submit(0, 3);
    await handOut();
    await retry();
    expect(await submit(1, 4)).toMatchObject({ ok: true, replayed: false });
    expect(waiting()).toMatchObject([{ payload: 4 }]);
  });

  test('makes no second task of a submission that comes a second time', async () => {
    const { submit, handOut, tasks } = setup();
    const first = await submit(0, 1, { submittedAt: NOW + 1, once: true });
    await handOut();
    const again = await submit(1, 1, { submittedAt: NOW + 1, once: true });
    expect(again).toMatchObject({ ok: true, deduplicated: 'debounce', id: first.ok && first.id });
    await submit(0, 3, { submittedAt: NOW + 3, once: true });
    await submit(1, 2, { submittedAt: NOW + 2, once: true });
    expect(tasks()).toMatchObject([{ payload: 1 }, { payload: 3 }]);
  });

  test('tells a submitter when where the chain has come to could not be kept, and goes on from there', async () => {
    const { places, submit, waiting } = setup();
    places.down = 1;
    // The first change makes the beginning, the second one is lost.
    const lost = await submit(0, 1);
    expect(lost).toMatchObject({ ok: false, error: { code: 'log_unavailable', retryable: true } });
    expect(await submit(1, 2)).toMatchObject({ ok: true, deduplicated: 'debounce' });
    expect(waiting()).toMatchObject([{ payload: 2 }]);
  });
});
