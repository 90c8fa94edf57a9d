import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { commandOf, eventOf, type Move } from '../../test/contract/log/tasks.ts';
import { evolve, type TaskState } from '../domain/task.ts';
import type { EventLog } from './event-log.ts';
import { execute } from './handle.ts';

const TASK = { tenant: 'acme', taskId: randomUUID() };

/** A log of one task in memory. `interfere` runs before an append, as another writer would. */
function setup(interfere: (append: number) => void = () => {}) {
  let state: TaskState | undefined;
  let seq = 0;
  const calls: string[] = [];
  const log: Pick<EventLog, 'append' | 'readState'> = {
    async append(event, expectedSeq) {
      calls.push(`append ${event.kind} expecting ${expectedSeq}`);
      interfere(calls.filter((call) => call.startsWith('append')).length);
      const lastSeq = state?.seq ?? 0;
      if (expectedSeq !== lastSeq) return { status: 'conflict', lastSeq };
      seq += 1;
      state = evolve(state, { seq, storedAt: event.at, event });
      return { status: 'stored', seq };
    },
    async readState(_tenant, _taskId, atLeastSeq) {
      calls.push(`read ${atLeastSeq ?? 'anything'}`);
      return state;
    },
  };
  const move = (name: Move): void => {
    const event = eventOf(name, TASK.taskId, state);
    seq += 1;
    state = evolve(state, { seq, storedAt: event.at, event });
  };
  return { log, calls, move, state: () => state };
}

describe('carrying out a command', () => {
  test('reads nothing when the task is assumed not to exist, and it does not', async () => {
    const { log, calls, state } = setup();
    const done = await execute(log, { ...TASK, known: 'none' }, (known) =>
      commandOf('ingest', TASK.taskId, known),
    );
    expect(calls).toEqual(['append INGESTED expecting 0']);
    expect(done).toMatchObject({ ok: true, value: { seq: 1, state: { status: 'INGESTED', seq: 1 } } });
    expect(done.ok && done.value.state).toEqual(state());
  });

  test('reads the task when that was wrong, and decides again', async () => {
    const { log, calls, move } = setup();
    move('ingest');
    const done = await execute(log, { ...TASK, known: 'none' }, (known) =>
      commandOf('ingest', TASK.taskId, known),
    );
    expect(calls).toEqual(['append INGESTED expecting 0', 'read 1']);
    expect(done).toMatchObject({ ok: false, error: { code: 'task_exists' } });
  });

  test('reads first when nothing is known', async () => {
    const { log, calls, move } = setup();
    move('ingest');
    const done = await execute(log, TASK, (known) => commandOf('queue', TASK.taskId, known));
    expect(calls).toEqual(['read anything', 'append QUEUED expecting 1']);
    expect(done).toMatchObject({ ok: true, value: { seq: 2 } });
  });

  test('decides again on what moved meanwhile, with a new command', async () => {
    const { log, calls, move } = setup((append) => {
      if (append === 1) move('carry');
    });
    move('ingest');
    const eventIds = new Set<string>();
    const done = await execute(log, TASK, (known) => {
      const command = commandOf('queue', TASK.taskId, known);
      eventIds.add(command.eventId);
      return command;
    });
    expect(calls).toEqual([
      'read anything',
      'append QUEUED expecting 1',
      'read 2',
      'append QUEUED expecting 2',
    ]);
    expect(eventIds.size).toBe(2);
    expect(done).toMatchObject({ ok: true, value: { seq: 3, state: { status: 'QUEUED' } } });
  });

  test('answers the refusal when the move is no longer legal', async () => {
    const { log, move } = setup((append) => {
      if (append === 1) move('request_cancel');
    });
    move('ingest');
    const done = await execute(log, TASK, (known) => commandOf('queue', TASK.taskId, known));
    expect(done).toMatchObject({ ok: false, error: { code: 'transition_illegal' } });
  });

  test('gives up when others never let it', async () => {
    const { log, calls, move } = setup(() => move('carry'));
    move('ingest');
    const done = await execute(log, TASK, (known) => commandOf('queue', TASK.taskId, known));
    expect(done).toMatchObject({ ok: false, error: { code: 'append_conflict' } });
    expect(calls.filter((call) => call.startsWith('append')).length).toBe(10);
  });
});
