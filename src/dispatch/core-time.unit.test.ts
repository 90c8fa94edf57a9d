import { describe, expect, it } from 'vitest';
import { coreWorld, dispatcher, NOW, named, running } from '../../test/support/core-world.ts';
import { type FencedLog, taskIdOf } from '../../test/support/fenced-log.ts';
import type { Intent } from './decisions.ts';
import { TIMER_GRACE_MS } from './placement.ts';

const startedOf = (log: FencedLog, n: number): string => {
  log.start(taskIdOf(n));
  return taskIdOf(n);
};

describe('delays', () => {
  it('holds a task until its runAt', () => {
    const { log, core, given, decisions, line } = coreWorld();
    given(() => log.ingest(1, { runAt: NOW + 60_000 }));
    expect(named(decisions())).toEqual(['set_timer 1']);
    expect(line()).toMatchObject({ waiting: 0, delayed: 1 });
    core.advance(NOW + 59_999);
    expect(decisions()).toEqual([]);
  });

  it('wakes a task itself whose timer does not fire, and says so', () => {
    const { log, core, given, decisions } = coreWorld();
    given(() => log.ingest(1, { runAt: NOW + 60_000 }));
    decisions();
    expect(core.advance(NOW + 60_000 + TIMER_GRACE_MS)).toEqual({ due: 1, overdue: 1, expired: 0 });
    expect(named(decisions())).toEqual(['queue 1']);
  });

  it('takes no notice of a timer of an earlier delay, or of a task that does not wait for one', () => {
    const { log, core, given, decisions } = coreWorld();
    given(() => log.ingest(1, { runAt: NOW + 60_000 }));
    decisions();
    expect(core.timerFired('acme', taskIdOf(1), NOW + 59_999)).toBe(false);
    expect(core.timerFired('acme', taskIdOf(1), NOW + 60_000)).toBe(true);
    expect(core.timerFired('acme', taskIdOf(1), NOW + 60_000)).toBe(false);
    expect(core.timerFired('acme', taskIdOf(9), NOW + 60_000)).toBe(false);
    expect(decisions()).toHaveLength(1);
  });

  it('does not want a timer any more for a task that was cancelled meanwhile', () => {
    const { log, core, given, decisions, line } = coreWorld();
    given(
      () => log.ingest(1, { runAt: NOW + 60_000 }),
      () => log.requestCancel(taskIdOf(1)),
    );
    expect(decisions()).toEqual([]);
    expect(line()).toMatchObject({ delayed: 0 });
    expect(core.advance(NOW + 90_000)).toEqual({ due: 0, overdue: 0, expired: 0 });
  });

  it('watches the delays of the past itself, punctually: their timers may be gone', () => {
    const { log, core, given } = coreWorld({ phase: 'replaying' });
    given(() => log.ingest(1, { runAt: NOW + 60_000 }));
    expect(core.nextWakeAt()).toBe(NOW + 60_000);
  });
});

describe('deadlines', () => {
  it('end a task that waits, is delayed, or is queued', () => {
    const { log, core, given, run, line } = coreWorld({ window: { min: 1, max: 1, ms: 1 } });
    const deadlineAt = NOW + 1_000;
    given(
      () => log.ingest(1, { deadlineAt }),
      () => log.ingest(2, { deadlineAt }),
      () => log.ingest(3, { deadlineAt, runAt: NOW + 5_000 }),
    );
    run();
    expect(line()).toMatchObject({ ready: 1, waiting: 1, delayed: 1 });
    log.now = deadlineAt;
    expect(core.advance(deadlineAt)).toEqual({ due: 0, overdue: 0, expired: 3 });
    expect(named(run()).sort()).toEqual(['dead_letter 1', 'dead_letter 2', 'dead_letter 3']);
    expect(core.size).toBe(0);
    expect(line()).toMatchObject({ ready: 0, waiting: 0, delayed: 0 });
  });

  it('leave a running task alone, and end it when it would be retried', () => {
    const world = coreWorld();
    const id = running(world, 1, { deadlineAt: NOW + 1_000 });
    world.log.now = NOW + 2_000;
    expect(world.core.advance(NOW + 2_000).expired).toBe(0);
    expect(world.decisions()).toEqual([]);
    world.given(() => world.log.fail(id));
    world.log.now = NOW + 60_000;
    world.core.advance(NOW + 60_000);
    expect(named(world.run())).toContain('dead_letter 1');
  });

  it('are kept in mind for a task that is just being queued', () => {
    const { log, core, given, decisions, append } = coreWorld();
    given(() => log.ingest(1, { deadlineAt: NOW + 1_000 }));
    const [decision] = decisions() as Intent[];
    log.now = NOW + 1_000;
    expect(core.advance(log.now).expired).toBe(0);
    append(decision as Intent);
    given();
    expect(core.advance(log.now).expired).toBe(1);
    expect(named(decisions())).toEqual(['dead_letter 1']);
  });

  it('lose against a claim that came first', () => {
    const { log, core, given, run, decisions, append } = coreWorld();
    given(() => log.ingest(1, { deadlineAt: NOW + 1_000 }));
    run();
    log.now = NOW + 1_000;
    core.advance(log.now);
    const [decision] = decisions();
    log.claim(taskIdOf(1));
    const outcome = append(decision as Intent);
    expect(outcome.status).toBe('conflict');
    core.refused((decision as Intent).task, (decision as Intent).seq, log.now);
    given();
    expect(decisions()).toEqual([]);
    expect(core.stats()['transcode']).toMatchObject({ running: 1, ready: 0 });
  });
});

describe('ageing', () => {
  it('lets tasks that wait announce themselves again, where they stood', () => {
    const { log, core, given, run, decisions, line } = coreWorld({ window: { min: 1, max: 1, ms: 1 } });
    given(
      () => log.ingest(1),
      () => log.ingest(2),
      () => log.ingest(3, { runAt: NOW + 60_000 }),
      () => log.ingest(4),
    );
    run();
    expect(core.age(3)).toBe(2);
    const carries = decisions() as Intent[];
    expect(named(carries)).toEqual(['carry 2', 'carry 3']);
    for (const { task } of carries) log.do(task.id, dispatcher, { kind: 'carry' });
    given();
    expect(line()).toMatchObject({ waiting: 2, delayed: 1, ready: 1 });
    expect(core.age(3)).toBe(0);
    given(() => log.claim(taskIdOf(1)));
    expect(named(decisions())).toEqual(['queue 2']);
    core.timerFired('acme', taskIdOf(3), NOW + 60_000);
    given(() => log.complete(startedOf(log, 1)));
    expect(line()).toMatchObject({ waiting: 2, delayed: 0 });
  });

  it('keeps a task delayed whose renewal is in doubt', () => {
    const { log, core, given, decisions, line } = coreWorld();
    given(() => log.ingest(1, { runAt: NOW + 60_000 }));
    decisions();
    core.age(1);
    const [carry] = decisions() as Intent[];
    core.unresolved(carry?.task as Intent['task'], NOW + 500);
    core.advance(NOW + 500);
    expect(decisions()).toEqual([]);
    expect(line()).toMatchObject({ delayed: 1 });
  });
});
