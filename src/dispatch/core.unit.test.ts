import { describe, expect, it } from 'vitest';
import { coreWorld, dispatcher, NOW, named, running } from '../../test/support/core-world.ts';
import { type FencedLog, taskIdOf } from '../../test/support/fenced-log.ts';
import { DispatchCore } from './core.ts';
import type { Decision } from './decisions.ts';
import { stateOf } from './live-task.ts';

describe('queueing', () => {
  it('queues an ingested task at once, expecting its last sequence', () => {
    const { log, given, decisions } = coreWorld();
    given(() => log.ingest(1));
    expect(decisions()).toMatchObject([{ kind: 'queue', seq: 1, task: { id: taskIdOf(1) } }]);
  });

  it('decides once for a task while its append is under way', () => {
    const { log, given, decisions } = coreWorld();
    given(() => log.ingest(1));
    decisions();
    expect(decisions()).toEqual([]);
  });

  it('recognises its own event in the log', () => {
    const { log, given, run, decisions, line } = coreWorld();
    given(() => log.ingest(1));
    run();
    expect(decisions()).toEqual([]);
    expect(line()).toMatchObject({ waiting: 0, intents: 0, ready: 1 });
  });

  it('passes over events that were shown before', () => {
    const { log, core, given, decisions } = coreWorld();
    given(() => log.ingest(1));
    decisions();
    for (const recorded of log.events) core.observe(recorded);
    expect(decisions()).toEqual([]);
  });

  it('serves a class in the order of submission', () => {
    const { log, given, decisions } = coreWorld();
    given(...[1, 2, 3].map((n) => () => log.ingest(n)));
    expect(named(decisions())).toEqual(['queue 1', 'queue 2', 'queue 3']);
  });

  it('serves class 1 before 2 before 3 before 4', () => {
    const { log, given, decisions } = coreWorld({ window: { min: 4, max: 4, ms: 1 } });
    given(...[4, 3, 2, 1].map((priority) => () => log.ingest(priority, { priority })));
    expect(named(decisions())).toEqual(['queue 1', 'queue 2', 'queue 3', 'queue 4']);
  });

  it('puts a retried task before tasks submitted after it', () => {
    const world = coreWorld({ window: { min: 1, max: 1, ms: 1 } });
    const { log, core, given, decisions } = world;
    const id = running(world, 1);
    given(
      () => log.ingest(2),
      () => log.ingest(3),
    );
    world.run();
    given(() => log.fail(id));
    core.advance(NOW + 10_000);
    given(() => log.claim(taskIdOf(2)));
    expect(named(decisions())).toEqual(['queue 1']);
  });

  it('passes the policy on, and counts attempts and rounds as the log does', () => {
    const world = coreWorld();
    const id = running(world, 1, { policy: { maxRetries: 7 }, trace: 'a-trace' });
    world.given(() => world.log.lose(id));
    world.core.advance(NOW + 60_000);
    const [decision] = world.decisions();
    expect(decision?.task.rare?.trace).toBe('a-trace');
    expect(stateOf((decision as Decision).task, null)).toEqual({
      ...world.log.state(id),
      payload: null,
    });
  });
});

describe('the ready window', () => {
  it('holds back what does not fit', () => {
    const { log, given, decisions, line } = coreWorld();
    given(...[1, 2, 3, 4, 5].map((n) => () => log.ingest(n)));
    expect(decisions()).toHaveLength(3);
    expect(line()).toMatchObject({ waiting: 2, intents: 3 });
  });

  it('fills up when a task is claimed', () => {
    const { log, given, run, decisions } = coreWorld();
    given(...[1, 2, 3, 4, 5].map((n) => () => log.ingest(n)));
    run();
    given(() => log.claim(taskIdOf(1)));
    expect(named(decisions())).toEqual(['queue 4']);
  });

  it('is of each type alone', () => {
    const { log, given, decisions } = coreWorld({ window: { min: 1, max: 1, ms: 1 } });
    given(
      () => log.ingest(1),
      () => log.ingest(2),
      () => log.ingest(3, { type: 'thumbnail' }),
    );
    expect(named(decisions())).toEqual(['queue 1', 'queue 3']);
  });

  it('is not widened by claims of any age that were read when the dispatcher started', () => {
    const { log, core, given, line } = coreWorld({
      phase: 'replaying',
      window: { min: 3, max: 10, ms: 500 },
    });
    for (let n = 1; n <= 60; n++) {
      given(
        () => log.ingest(n),
        () => log.do(taskIdOf(n), dispatcher, { kind: 'queue', inlinePayload: true }),
        () => log.claim(taskIdOf(n)),
      );
    }
    core.enter('leading');
    core.measure(20);
    expect(line()).toMatchObject({ window: 3, claimed: 60 });
  });

  it('grows with the rate of claims up to its limit, and shrinks again', () => {
    const { log, core, given, run, line } = coreWorld({ window: { min: 3, max: 10, ms: 500 } });
    for (let n = 1; n <= 60; n++) {
      given(() => log.ingest(n));
      run();
      given(() => log.claim(taskIdOf(n)));
      core.measure(20);
    }
    expect(line()?.claimsPerSecond).toBeGreaterThan(20);
    expect(line()?.window).toBe(10);
    core.measure(60_000);
    expect(line()?.window).toBe(3);
  });
});

describe('after an attempt', () => {
  it('waits for the backoff of a failed one', () => {
    const world = coreWorld();
    const { log, core, given, decisions } = world;
    const policy = { backoff: { kind: 'fixed', baseMs: 5_000 }, jitter: 'none' } as const;
    const id = running(world, 1, { policy });
    given(() => log.fail(id));
    core.advance(NOW + 4_999);
    expect(decisions()).toEqual([]);
    expect(core.nextWakeAt()).toBe(NOW + 5_000);
    expect(core.advance(NOW + 5_000)).toEqual({ due: 1, expired: 0 });
    expect(named(decisions())).toEqual(['queue 1']);
  });

  it('sends a task without retries left to the dead letters', () => {
    const world = coreWorld();
    const id = running(world, 1, { policy: { maxRetries: 0 } });
    world.given(() => world.log.fail(id));
    expect(named(world.run())).toEqual(['dead_letter 1']);
    expect(world.log.state(id)?.status).toBe('DEAD_LETTER');
    expect(world.core.size).toBe(0);
  });

  it('cancels a lost one whose cancellation was requested, retries left or not', () => {
    for (const maxRetries of [0, 3]) {
      const world = coreWorld();
      const id = running(world, 1, { policy: { maxRetries } });
      world.given(
        () => world.log.requestCancel(id),
        () => world.log.lose(id),
      );
      expect(named(world.run())).toEqual(['cancel 1']);
      expect(world.log.state(id)?.status).toBe('CANCELLED');
    }
  });

  it('forgets what has ended', () => {
    const world = coreWorld();
    const id = running(world);
    world.given(() => world.log.complete(id));
    expect(world.core.size).toBe(0);
    expect(world.line()).toMatchObject({ waiting: 0, ready: 0, running: 0 });
    expect(world.core.cachedBytes).toBe(0);
  });

  it('starts a replayed task as one whose beginning must be read', () => {
    const world = coreWorld();
    const id = running(world, 1, { policy: { maxRetries: 0 } });
    world.given(() => world.log.fail(id));
    world.run();
    world.given(() => world.log.replay(id));
    const [decision] = world.decisions();
    expect(decision).toMatchObject({ kind: 'queue', task: { id, round: 2, attempt: 1, known: false } });
  });
});

describe('the outcomes of appends', () => {
  it('drop an intent that was refused, and wait for the event that refused it', () => {
    const { log, core, given, decisions, line } = coreWorld();
    given(() => log.ingest(1));
    const [decision] = decisions() as Decision[];
    log.requestCancel(taskIdOf(1));
    core.refused(decision?.task as Decision['task'], 1);
    expect(decisions()).toEqual([]);
    expect(line()).toMatchObject({ intents: 0 });
    given();
    expect(core.size).toBe(0);
  });

  it('do nothing when the event that refused it was seen first', () => {
    const { log, core, given, decisions, append, line } = coreWorld();
    given(() => log.ingest(1));
    const [decision] = decisions() as Decision[];
    append(decision as Decision);
    given();
    core.refused(decision?.task as Decision['task'], 1);
    expect(line()).toMatchObject({ ready: 1, intents: 0, waiting: 0 });
  });

  it('decide again when the event that refused it changed no status', () => {
    const { log, core, given, decisions } = coreWorld();
    given(() => log.ingest(1));
    const [decision] = decisions() as Decision[];
    given(() => log.do(taskIdOf(1), dispatcher, { kind: 'carry' }));
    core.refused(decision?.task as Decision['task'], 1);
    expect(decisions()).toMatchObject([{ kind: 'queue', seq: 2 }]);
  });

  it.each([
    ['refused', (core: DispatchCore, { task, seq }: Decision) => core.refused(task, seq)],
    ['unknown', (core: DispatchCore, { task, seq }: Decision) => core.unresolved(task, seq, NOW + 500)],
  ])(
    'say nothing of the append that was decided on after an event had overtaken theirs: %s',
    (_how, hear) => {
      for (const overtake of [
        (log: FencedLog) => log.reschedule(taskIdOf(1), { priority: 1 }),
        (log: FencedLog) => log.do(taskIdOf(1), dispatcher, { kind: 'carry' }),
      ]) {
        const { log, core, given, decisions, append, line } = coreWorld();
        given(() => log.ingest(1));
        const [first] = decisions() as [Decision];
        given(() => overtake(log));
        const [second] = decisions() as [Decision];
        expect(second).toMatchObject({ kind: 'queue', seq: 2 });
        hear(core, first);
        expect(line()).toMatchObject({ intents: 1, waiting: 0, delayed: 0 });
        expect(decisions()).toEqual([]);
        append(second);
        given();
        expect(line()).toMatchObject({ ready: 1, intents: 0 });
      }
    },
  );

  it('decide again when such an event is seen after the refusal', () => {
    const { log, core, given, decisions } = coreWorld();
    given(() => log.ingest(1));
    const [decision] = decisions() as Decision[];
    log.do(taskIdOf(1), dispatcher, { kind: 'carry' });
    core.refused(decision?.task as Decision['task'], 1);
    expect(decisions()).toEqual([]);
    given();
    expect(decisions()).toMatchObject([{ kind: 'queue', seq: 2 }]);
  });

  it('put off what is unknown, and forget the doubt when the event comes after all', () => {
    const { log, core, given, decisions, append, line } = coreWorld();
    given(() => log.ingest(1));
    const [decision] = decisions() as Decision[];
    core.unresolved(decision?.task as Decision['task'], 1, NOW + 500);
    expect(decisions()).toEqual([]);
    append(decision as Decision);
    given();
    core.advance(NOW + 500);
    expect(decisions()).toEqual([]);
    expect(line()).toMatchObject({ ready: 1, delayed: 0 });
  });

  it('try what is unknown again when the event does not come', () => {
    const { log, core, given, decisions } = coreWorld();
    given(() => log.ingest(1));
    const [decision] = decisions() as Decision[];
    core.unresolved(decision?.task as Decision['task'], 1, NOW + 500);
    core.advance(NOW + 500);
    expect(named(decisions())).toEqual(['queue 1']);
  });
});

describe('phases', () => {
  it('decides nothing before it leads, and everything that waits when it does', () => {
    const { log, core, given, decisions } = coreWorld({ phase: 'replaying' });
    given(() => log.ingest(1));
    expect(decisions()).toEqual([]);
    core.enter('following');
    given(() => log.ingest(2));
    expect(decisions()).toEqual([]);
    core.enter('leading');
    expect(named(decisions())).toEqual(['queue 1', 'queue 2']);
  });

  it('stays small while it follows another leader', () => {
    const follower = coreWorld({ phase: 'following' });
    const leader = new DispatchCore({
      window: { min: 3, max: 3, ms: 1 },
      inlinePayloadBytes: 100,
      payloadCacheBytes: 0,
    });
    leader.enter('leading');
    for (let n = 1; n <= 2_000; n++) {
      follower.given(() => follower.log.ingest(n));
      leader.observe(follower.log.events.at(-1) as (typeof follower.log.events)[0]);
      const made: Decision[] = [];
      leader.decide(made, NOW);
      for (const decision of made) follower.append(decision as Decision);
      follower.given(
        () => follower.log.claim(taskIdOf(n)),
        () => follower.log.start(taskIdOf(n)),
        () => follower.log.complete(taskIdOf(n)),
      );
      for (const recorded of follower.log.events.slice(-4)) leader.observe(recorded);
    }
    expect(follower.core.size).toBe(0);
    expect(follower.core.stats()['transcode']).toMatchObject({
      waiting: 0,
      ready: 0,
      intents: 0,
      running: 0,
    });
  });
});

describe('payloads', () => {
  it('are kept while they fit, small ones only', () => {
    const { log, core, given, decisions } = coreWorld({
      window: { min: 9, max: 9, ms: 1 },
      payloadCacheBytes: 100,
    });
    given(
      () => log.ingest(1, { payload: 'x'.repeat(48) }),
      () => log.ingest(2, { payload: 'x'.repeat(200) }),
      () => log.ingest(3, { payload: 'x'.repeat(48) }),
      () => log.ingest(4, { payload: 'x' }),
    );
    expect(core.cachedBytes).toBe(100);
    expect(decisions().map(({ task }) => task.payload?.length)).toEqual([50, undefined, 50, undefined]);
  });

  it('are let go when the task is queued', () => {
    const { log, core, given, run } = coreWorld();
    given(() => log.ingest(1));
    expect(core.cachedBytes).toBeGreaterThan(0);
    run();
    expect(core.cachedBytes).toBe(0);
  });
});
