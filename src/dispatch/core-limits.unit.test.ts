import { describe, expect, it } from 'vitest';
import { coreWorld, NOW, named, running } from '../../test/support/core-world.ts';
import { taskIdOf } from '../../test/support/fenced-log.ts';

const createdAt = '2026-01-01T00:00:00.000Z';
const ended = ({ log }: ReturnType<typeof coreWorld>, n: number) => [
  () => log.claim(taskIdOf(n)),
  () => log.start(taskIdOf(n)),
  () => log.complete(taskIdOf(n)),
];
const wide = { window: { min: 100, max: 100, ms: 1 } };

describe('a limit of concurrency', () => {
  it('of a tenant holds over all its types, and does not touch others', () => {
    const world = coreWorld(wide);
    const { core, log, given, decisions } = world;
    core.terms.putTenant('acme', { name: 'acme', createdAt, limits: { concurrency: 2 } }, NOW);
    given(
      () => log.ingest(1),
      () => log.ingest(2, { type: 'thumbnail' }),
      () => log.ingest(3),
      () => log.ingest(4, { tenant: 'zeta' }),
    );
    expect(named(decisions())).toEqual(['queue 1', 'queue 2', 'queue 4']);
  });

  it('of a tenant is shared by its types in turns', () => {
    const world = coreWorld(wide);
    const { core, log, given, run } = world;
    core.terms.putTenant('acme', { name: 'acme', createdAt, limits: { concurrency: 1 } }, NOW);
    given(
      ...[1, 2, 3].map((n) => () => log.ingest(n)),
      ...[4, 5, 6].map((n) => () => log.ingest(n, { type: 'thumbnail' })),
    );
    const order: string[] = [];
    for (let n = 0; n < 6; n += 1) {
      const [started = ''] = named(run());
      order.push(started);
      given(...ended(world, Number(started.slice(6))));
    }
    expect(order).toEqual(['queue 1', 'queue 4', 'queue 2', 'queue 5', 'queue 3', 'queue 6']);
  });

  it('is kept while nobody knows whether an append was stored: that task is decided again before anybody else', () => {
    const world = coreWorld(wide);
    const { core, log, given, decisions, append } = world;
    core.terms.putTenant('acme', { name: 'acme', createdAt, limits: { concurrency: 1 } }, NOW);
    given(
      () => log.ingest(1),
      () => log.ingest(2),
    );
    const [first] = decisions();
    if (first === undefined) throw new Error('nothing was decided');
    given(() => log.reschedule(taskIdOf(2), { priority: 1 }));
    append(first);
    core.unresolved(first.task, first.seq, log.now + 500);
    log.now += 500;
    core.advance(log.now);
    expect(named(decisions())).toEqual(['queue 1']);
    // It was stored after all, and the log says so in a moment.
    core.refused(first.task, first.seq);
    expect(decisions()).toEqual([]);
    given(...ended(world, 1));
    expect(named(decisions())).toEqual(['queue 2']);
  });

  it('is kept by a leader who took over: what is limited waits for what may still arrive, and nothing else does', () => {
    const world = coreWorld(wide);
    const { core, log, given, decisions, append } = world;
    core.terms.putTenant('acme', { name: 'acme', createdAt, limits: { concurrency: 1 } }, NOW);
    given(
      () => log.ingest(1),
      () => log.ingest(2),
      () => log.ingest(3, { tenant: 'zeta', concurrencyKey: 'gpu' }),
      () => log.ingest(4, { tenant: 'zeta' }),
    );
    core.terms.holdLimited(NOW + 10_000, NOW);
    expect(named(decisions())).toEqual(['queue 4']);
    expect(core.explain('acme', taskIdOf(1), NOW).map(({ kind }) => kind)).toContain('new_leader');
    expect(core.explain('zeta', taskIdOf(3), NOW)[0]).toEqual({ kind: 'new_leader' });
    // An append of the leader before arrives.
    given(() =>
      log.do(taskIdOf(2), { kind: 'dispatcher', id: 'd0' }, { kind: 'queue', inlinePayload: true }),
    );
    expect(core.nextWakeAt()).toBe(NOW + 10_000);
    core.advance(NOW + 10_000);
    const after = decisions();
    expect(named(after)).toEqual(['queue 3']);
    for (const decision of after) append(decision);
    given(...ended(world, 2));
    expect(named(decisions())).toEqual(['queue 1']);
  });

  it('counts from QUEUED until the attempt ends, and lets the next one in at once', () => {
    const world = coreWorld(wide);
    const { core, log, given, run, decisions } = world;
    core.terms.putTenant('acme', { name: 'acme', createdAt, types: { transcode: { concurrency: 1 } } }, NOW);
    given(...[1, 2, 3].map((n) => () => log.ingest(n)));
    expect(named(run())).toEqual(['queue 1']);
    given(() => log.claim(taskIdOf(1)));
    expect(decisions()).toEqual([]);
    given(
      () => log.start(taskIdOf(1)),
      () => log.complete(taskIdOf(1)),
    );
    expect(named(run())).toEqual(['queue 2']);
    given(() => log.claim(taskIdOf(2)));
    given(
      () => log.start(taskIdOf(2)),
      () => log.fail(taskIdOf(2)),
    );
    expect(named(decisions().filter(({ kind }) => kind === 'queue'))).toEqual(['queue 3']);
  });

  it('of a type holds over all tenants and versions', () => {
    const { core, log, given, decisions } = coreWorld(wide);
    core.terms.putType('transcode', { type: 'transcode', concurrency: 2 }, NOW);
    given(
      () => log.ingest(1),
      () => log.ingest(2, { tenant: 'zeta', version: 2 }),
      () => log.ingest(3, { tenant: 'beta' }),
    );
    expect(named(decisions())).toEqual(['queue 1', 'queue 2']);
  });

  it('is kept by a core that learns of everything from the log alone', () => {
    const before = coreWorld(wide);
    before.given(...[1, 2, 3, 4].map((n) => () => before.log.ingest(n)));
    before.core.terms.putTenant('acme', { name: 'acme', createdAt, limits: { concurrency: 2 } }, NOW);
    before.run();
    before.given(() => before.log.claim(taskIdOf(1)));
    const after = coreWorld({ ...wide, phase: 'replaying' });
    after.core.terms.putTenant('acme', { name: 'acme', createdAt, limits: { concurrency: 2 } }, NOW);
    for (const recorded of before.log.events) after.core.observe(recorded);
    after.core.enter('leading');
    expect(after.decisions()).toEqual([]);
  });

  it('keeps the slot of a task whose append nobody knows the outcome of', () => {
    const { core, log, given, decisions } = coreWorld(wide);
    core.terms.putTenant('acme', { name: 'acme', createdAt, limits: { concurrency: 1 } }, NOW);
    given(
      () => log.ingest(1),
      () => log.ingest(2),
    );
    const [unknown] = decisions();
    core.unresolved(unknown?.task as NonNullable<typeof unknown>['task'], unknown?.seq ?? 0, NOW + 500);
    expect(decisions()).toEqual([]);
    core.advance(NOW + 500);
    expect(named(decisions())).toEqual(['queue 1']);
  });

  it('that is lifted or lowered holds at once', () => {
    const world = coreWorld(wide);
    const { core, log, given, run, decisions } = world;
    const limit = (concurrency?: number) =>
      core.terms.putTenant('acme', { name: 'acme', createdAt, limits: { concurrency } }, NOW);
    limit(1);
    given(...[1, 2, 3, 4].map((n) => () => log.ingest(n)));
    expect(run()).toHaveLength(1);
    limit(3);
    expect(run()).toHaveLength(2);
    limit(1);
    given(...ended(world, 1), ...ended(world, 2));
    expect(decisions()).toEqual([]);
    core.terms.putTenant('acme', undefined, NOW);
    expect(named(decisions())).toEqual(['queue 4']);
  });
});

describe('a pause', () => {
  const pause = { paused: true, reason: 'the bank is down', actor: 'key:1', at: createdAt } as const;

  it.each([
    ['of a type', { type: 'transcode' }, ['queue 3']],
    ['of a tenant', { tenant: 'acme' }, ['queue 2']],
    ['of a tenant in a type', { tenant: 'acme', type: 'transcode' }, ['queue 2', 'queue 3']],
  ])('%s holds back what it names until it is lifted', (_, scope, free) => {
    const { core, log, given, decisions } = coreWorld(wide);
    core.terms.putPause(scope, pause, NOW);
    given(
      () => log.ingest(1),
      () => log.ingest(2, { tenant: 'zeta' }),
      () => log.ingest(3, { type: 'thumbnail' }),
    );
    expect(named(decisions())).toEqual(free);
    core.terms.putPause(scope, undefined, NOW);
    expect(decisions().length + free.length).toBe(3);
  });

  it('ends by itself', () => {
    const { core, log, given, decisions } = coreWorld(wide);
    core.terms.putPause({ type: 'transcode' }, { ...pause, until: new Date(NOW + 5_000).toISOString() }, NOW);
    given(() => log.ingest(1));
    expect(decisions()).toEqual([]);
    expect(core.nextWakeAt()).toBe(NOW + 5_000);
    core.advance(NOW + 5_000);
    expect(named(decisions())).toEqual(['queue 1']);
  });
});

describe('why a task is not running', () => {
  const why = ({ core, log }: ReturnType<typeof coreWorld>, n: number, tenant = 'acme') =>
    core.explain(tenant, taskIdOf(n), log.now);

  it('is told as facts at every stage of its life', () => {
    const world = coreWorld({ window: { min: 1, max: 1, ms: 1 } });
    const { log, core, given, run } = world;
    given(...[1, 2, 3].map((n) => () => log.ingest(n)));
    run();
    expect(why(world, 1)).toEqual([{ kind: 'waiting_for_worker', ready: 1, running: 0 }]);
    expect(why(world, 3)).toEqual([
      { kind: 'behind', count: 1, priority: 2 },
      { kind: 'workers_busy', ready: 1, running: 0 },
    ]);
    given(() => log.claim(taskIdOf(1)));
    expect(why(world, 1)).toEqual([{ kind: 'running', status: 'CLAIMED', attempt: 1 }]);
    given(
      () => log.start(taskIdOf(1)),
      () => log.fail(taskIdOf(1)),
    );
    const dueAt = log.state(taskIdOf(1))?.dueAt;
    expect(why(world, 1)).toEqual([{ kind: 'due_later', dueAt, retry: true, delayed: 1 }]);
    expect(why(world, 9)).toEqual([{ kind: 'unknown' }]);
    expect(core.explain('zeta', taskIdOf(1), log.now)).toEqual([{ kind: 'unknown' }]);
  });

  it('names the limit, the pause and the key that hold it', () => {
    const world = coreWorld(wide);
    const { log, core, given, run } = world;
    const pause = { paused: true, reason: 'r', actor: 'key:1', at: createdAt } as const;
    core.terms.putTenant(
      'acme',
      { name: 'acme', createdAt, limits: { concurrency: 1, ratePerSecond: 1 } },
      NOW,
    );
    core.terms.putPause({ type: 'x' }, pause, NOW);
    given(
      () => log.ingest(1),
      () => log.ingest(2),
      () => log.ingest(3, { type: 'x', tenant: 'zeta' }),
      () => log.ingest(4, { orderingKey: 'k', tenant: 'zeta' }),
      () => log.ingest(5, { orderingKey: 'k', tenant: 'zeta' }),
      () => log.ingest(6, { concurrencyKey: 'k', tenant: 'zeta' }),
      () => log.ingest(7, { concurrencyKey: 'k', tenant: 'zeta' }),
    );
    run();
    expect(why(world, 2)).toEqual([
      { kind: 'limit', limit: 'tenant_concurrency', value: 1 },
      { kind: 'limit', limit: 'tenant_rate', value: 1, freeAt: NOW + 1_000 },
    ]);
    expect(why(world, 3, 'zeta')).toEqual([{ kind: 'paused', type: 'x', tenant: undefined, ...pause }]);
    expect(why(world, 5, 'zeta')).toEqual([{ kind: 'ordering_key', key: 'k', heldBy: taskIdOf(4) }]);
    expect(why(world, 7, 'zeta')).toEqual([{ kind: 'limit', limit: 'concurrency_key', value: 1 }]);
  });

  it('says that it is about to end once it must', () => {
    const world = coreWorld(wide);
    const id = running(world, 1, { policy: { maxRetries: 0 } });
    world.given(() => world.log.fail(id));
    expect(why(world, 1)).toEqual([{ kind: 'ending' }]);
  });
});
