import { describe, expect, it } from 'vitest';
import { coreWorld, NOW, named, running } from '../../test/support/core-world.ts';
import { taskIdOf } from '../../test/support/fenced-log.ts';

describe('a task that is rescheduled', () => {
  it('goes before others when its priority rises, and behind them when it falls', () => {
    const { log, given, decisions } = coreWorld();
    given(...[1, 2, 3].map((n) => () => log.ingest(n)));
    given(
      () => log.reschedule(taskIdOf(3), { priority: 1 }),
      () => log.reschedule(taskIdOf(1), { priority: 4 }),
    );
    expect(named(decisions())).toEqual(['queue 3', 'queue 2', 'queue 1']);
  });

  it('is queued with the payload of its last debounced submission, at the time that one asked for', () => {
    const { log, core, given, decisions } = coreWorld();
    const debounce = { key: 'k', until: NOW + 60_000, at: NOW };
    given(
      () => log.ingest(1, { payload: 'first', runAt: NOW + 5_000, debounce }),
      () => log.debounce(taskIdOf(1), { payload: 'second', submittedAt: NOW + 4_000, windowMs: 5_000 }),
    );
    core.advance(NOW + 8_999);
    expect(named(decisions())).not.toContain('queue 1');
    core.advance(NOW + 9_000);
    const [queued] = decisions();
    expect(queued).toMatchObject({ kind: 'queue', task: { payload: '"second"', payloadSeq: 2 } });
  });

  it('is counted once, however often it changes class', () => {
    const { log, given, run, line } = coreWorld({ phase: 'following' });
    given(
      () => log.ingest(1),
      () => log.reschedule(taskIdOf(1), { priority: 1 }),
      () => log.reschedule(taskIdOf(1), { priority: 2 }),
    );
    expect(line()).toMatchObject({ waiting: 1, delayed: 0 });
    run();
    expect(line()).toMatchObject({ waiting: 1 });
  });

  it('leaves the line for a later time', () => {
    const { log, core, given, decisions } = coreWorld();
    given(
      () => log.ingest(1),
      () => log.reschedule(taskIdOf(1), { runAt: NOW + 60_000 }),
    );
    core.advance(NOW + 59_999);
    expect(decisions()).toEqual([]);
    core.advance(NOW + 60_000);
    expect(named(decisions())).toEqual(['queue 1']);
  });

  it('is not woken at the time it had before', () => {
    const { log, core, given, decisions } = coreWorld();
    given(
      () => log.ingest(1, { runAt: NOW + 10_000 }),
      () => log.reschedule(taskIdOf(1), { runAt: NOW + 60_000 }),
    );
    core.advance(NOW + 10_000);
    expect(decisions()).toEqual([]);
  });

  it('runs at once when it no longer waits for a time: a runAt, or the backoff of a retry', () => {
    const world = coreWorld();
    const { log, given, decisions } = world;
    const failed = running(world, 1);
    given(
      () => log.fail(failed),
      () => log.ingest(2, { runAt: NOW + 60_000 }),
    );
    expect(named(decisions()).filter((each) => each.startsWith('queue'))).toEqual([]);
    given(
      () => log.reschedule(failed, { runAt: null }),
      () => log.reschedule(taskIdOf(2), { runAt: null }),
    );
    expect(named(decisions())).toEqual(['queue 1', 'queue 2']);
  });

  it('is queued with its new priority though an append with the old one was under way', () => {
    const { log, core, given, decisions, append } = coreWorld();
    given(() => log.ingest(1));
    const [queueing] = decisions();
    if (queueing === undefined) throw new Error('nothing was decided');
    log.reschedule(taskIdOf(1), { priority: 1 });
    expect(append(queueing).status).toBe('conflict');
    core.refused(queueing.task, queueing.seq);
    given();
    const [again] = decisions();
    if (again === undefined) throw new Error('it was not decided again');
    append(again);
    expect(log.events.at(-1)?.event).toMatchObject({ kind: 'QUEUED', priority: 1 });
  });

  it('ends at its deadline, however late it was put off', () => {
    const { log, core, given, decisions } = coreWorld();
    given(
      () => log.ingest(1, { deadlineAt: NOW + 5_000 }),
      () => log.reschedule(taskIdOf(1), { runAt: NOW + 60_000 }),
    );
    decisions();
    core.advance(NOW + 5_000);
    expect(named(decisions())).toEqual(['dead_letter 1']);
  });
});
