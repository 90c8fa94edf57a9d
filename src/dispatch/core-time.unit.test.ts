import { describe, expect, it } from 'vitest';
import { coreWorld, dispatcher, NOW, named, running } from '../../test/support/core-world.ts';
import { type FencedLog, taskIdOf } from '../../test/support/fenced-log.ts';
import type { Decision } from './decisions.ts';

const startedOf = (log: FencedLog, n: number): string => {
  log.start(taskIdOf(n));
  return taskIdOf(n);
};

describe('delays', () => {
  it('holds a task until its runAt', () => {
    const { log, core, given, decisions, line } = coreWorld();
    given(() => log.ingest(1, { runAt: NOW + 60_000 }));
    expect(line()).toMatchObject({ waiting: 0, delayed: 1 });
    core.advance(NOW + 59_999);
    expect(decisions()).toEqual([]);
    expect(core.advance(NOW + 60_000)).toEqual({ due: 1, expired: 0 });
    expect(named(decisions())).toEqual(['queue 1']);
  });

  it('is no backlog, and is counted apart until its time has come', () => {
    const { log, core, given } = coreWorld();
    given(
      () => log.ingest(1, { runAt: NOW + 1_000 }),
      () => log.ingest(2, { runAt: NOW + 2_000 }),
      () => log.ingest(3),
    );
    expect([core.waiting(), core.delayed()]).toEqual([{ transcode: 1 }, { transcode: 2 }]);
    core.advance(NOW + 1_000);
    expect([core.waiting(), core.delayed()]).toEqual([{ transcode: 2 }, { transcode: 1 }]);
  });

  it('tells how late the tasks were that waited for a time', () => {
    const { log, core, given } = coreWorld();
    given(
      () => log.ingest(1, { runAt: NOW + 1_000 }),
      () => log.ingest(2, { runAt: NOW + 1_300 }),
    );
    core.advance(NOW + 1_450);
    core.advance(NOW + 1_450);
    expect(core.lateness.told()).toMatchObject({ 100: 0, 200: 1, 500: 1, more: 0 });
  });

  it('ends for no more tasks at once than asked for, and then for the others', () => {
    const { log, core, given, line } = coreWorld();
    for (let n = 1; n <= 5; n += 1) given(() => log.ingest(n, { runAt: NOW + 1_000 }));
    expect(core.advance(NOW + 2_000, 3).due).toBe(3);
    expect(core.nextWakeAt()).toBe(NOW + 1_000);
    expect(core.advance(NOW + 2_000, 3).due).toBe(2);
    expect(line()).toMatchObject({ delayed: 0, waiting: 5 });
  });

  it('ends with the task when it is cancelled meanwhile', () => {
    const { log, core, given, decisions, line } = coreWorld();
    given(
      () => log.ingest(1, { runAt: NOW + 60_000 }),
      () => log.requestCancel(taskIdOf(1)),
    );
    expect(decisions()).toEqual([]);
    expect(line()).toMatchObject({ delayed: 0 });
    expect(core.advance(NOW + 90_000)).toEqual({ due: 0, expired: 0 });
  });

  it('is kept of the past as well', () => {
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
    expect(core.advance(deadlineAt)).toEqual({ due: 0, expired: 3 });
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
    const [decision] = decisions() as Decision[];
    log.now = NOW + 1_000;
    expect(core.advance(log.now).expired).toBe(0);
    append(decision as Decision);
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
    const outcome = append(decision as Decision);
    expect(outcome.status).toBe('conflict');
    core.refused((decision as Decision).task, (decision as Decision).seq);
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
    const carries = decisions() as Decision[];
    expect(named(carries)).toEqual(['carry 2', 'carry 3']);
    for (const { task } of carries) log.do(task.id, dispatcher, { kind: 'carry' });
    given();
    expect(line()).toMatchObject({ waiting: 2, delayed: 1, ready: 1 });
    expect(core.age(3)).toBe(0);
    given(() => log.claim(taskIdOf(1)));
    expect(named(decisions())).toEqual(['queue 2']);
    core.advance(NOW + 60_000);
    given(() => log.complete(startedOf(log, 1)));
    expect(line()).toMatchObject({ waiting: 2, delayed: 0 });
  });

  it('keeps a task delayed whose renewal is in doubt', () => {
    const { log, core, given, decisions, line } = coreWorld();
    given(() => log.ingest(1, { runAt: NOW + 60_000 }));
    decisions();
    core.age(1);
    const [carry] = decisions() as Decision[];
    core.unresolved(carry?.task as Decision['task'], carry?.seq ?? 0, NOW + 500);
    core.advance(NOW + 500);
    expect(decisions()).toEqual([]);
    expect(line()).toMatchObject({ delayed: 1 });
  });
});
