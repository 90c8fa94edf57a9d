import { describe, expect, it } from 'vitest';
import { coreWorld, NOW, named } from '../../test/support/core-world.ts';
import { taskIdOf } from '../../test/support/fenced-log.ts';

const wide = { window: { min: 100, max: 100, ms: 1 } };
type World = ReturnType<typeof coreWorld>;
const starts = ({ log }: World, n: number) => [() => log.claim(taskIdOf(n)), () => log.start(taskIdOf(n))];
const ends = (world: World, n: number) => [...starts(world, n), () => world.log.complete(taskIdOf(n))];

describe('tasks of an ordering key', () => {
  it('run one after the other in the order of submission, whatever their priority; other keys do not wait', () => {
    const world = coreWorld(wide);
    const { log, given, run } = world;
    given(
      () => log.ingest(1, { orderingKey: 'a', priority: 4 }),
      () => log.ingest(2, { orderingKey: 'a', priority: 1 }),
      () => log.ingest(3, { orderingKey: 'b' }),
      () => log.ingest(4),
    );
    expect(named(run())).toEqual(['queue 3', 'queue 4', 'queue 1']);
    given(...ends(world, 1));
    expect(named(run())).toEqual(['queue 2']);
  });

  it('keep the key over retries, until the task ends or is dead-lettered', () => {
    const world = coreWorld(wide);
    const { core, log, given, run } = world;
    const policy = { maxRetries: 1, backoff: { kind: 'fixed', baseMs: 5_000 }, jitter: 'none' } as const;
    given(
      () => log.ingest(1, { orderingKey: 'a', policy }),
      () => log.ingest(2, { orderingKey: 'a' }),
    );
    run();
    given(...starts(world, 1), () => log.fail(taskIdOf(1)));
    expect(run()).toEqual([]);
    log.now += 5_100;
    core.advance(log.now);
    expect(named(run())).toEqual(['queue 1']);
    given(...starts(world, 1), () => log.fail(taskIdOf(1)));
    expect(named(run())).toEqual(['dead_letter 1']);
    expect(named(run())).toEqual(['queue 2']);
  });

  it('let the next one run when the one before is cancelled', () => {
    const { log, given, run } = coreWorld({ window: { min: 1, max: 1, ms: 1 } });
    given(
      () => log.ingest(9),
      () => log.ingest(1, { orderingKey: 'a' }),
      () => log.ingest(2, { orderingKey: 'a' }),
      () => log.ingest(3, { orderingKey: 'a' }),
    );
    run();
    given(
      () => log.requestCancel(taskIdOf(1)),
      () => log.requestCancel(taskIdOf(2)),
      () => log.claim(taskIdOf(9)),
    );
    expect(named(run())).toContain('queue 3');
  });

  it('of other tenants and types have nothing to do with each other', () => {
    const { log, given, decisions } = coreWorld(wide);
    given(
      () => log.ingest(1, { orderingKey: 'a' }),
      () => log.ingest(2, { orderingKey: 'a', tenant: 'zeta' }),
      () => log.ingest(3, { orderingKey: 'a', type: 'thumbnail' }),
    );
    expect(decisions()).toHaveLength(3);
  });

  it('wait for an older one that is due later', () => {
    const { core, log, given, run } = coreWorld(wide);
    given(
      () => log.ingest(1, { orderingKey: 'a', runAt: NOW + 1_000 }),
      () => log.ingest(2, { orderingKey: 'a' }),
    );
    expect(run()).toEqual([]);
    log.now += 1_100;
    core.advance(log.now);
    expect(named(run())).toEqual(['queue 1']);
  });

  it('keep their order for a core that sees only events that hold the folded state', () => {
    const before = coreWorld(wide);
    before.given(
      () => before.log.ingest(1, { orderingKey: 'a' }),
      () => before.log.ingest(2, { orderingKey: 'a' }),
    );
    before.run();
    before.given(...starts(before, 1));
    const from = before.log.events.length;
    before.log.do(taskIdOf(2), { kind: 'dispatcher', id: 'd1' }, { kind: 'carry' });
    before.log.do(taskIdOf(1), { kind: 'worker', id: 'w1' }, { kind: 'carry' });
    const after = coreWorld({ ...wide, phase: 'replaying' });
    for (const recorded of before.log.events.slice(from)) after.core.observe(recorded);
    after.core.enter('leading');
    expect(after.decisions()).toEqual([]);
  });

  it('queue a replayed task behind those that were submitted meanwhile', () => {
    const world = coreWorld(wide);
    const { log, given, run } = world;
    given(() => log.ingest(1, { orderingKey: 'a', policy: { maxRetries: 0 } }));
    run();
    given(...starts(world, 1), () => log.fail(taskIdOf(1)));
    run();
    given(
      () => log.ingest(2, { orderingKey: 'a' }),
      () => log.ingest(3, { orderingKey: 'a' }),
      () => log.replay(taskIdOf(1)),
    );
    expect(named(run())).toEqual(['queue 2']);
    given(...ends(world, 2));
    expect(named(run())).toEqual(['queue 3']);
    given(...ends(world, 3));
    expect(named(run())).toEqual(['queue 1']);
  });
});

describe('tasks of a concurrency key', () => {
  it('run as many at a time as the type allows, and others pass them', () => {
    const world = coreWorld(wide);
    const { core, log, given, run } = world;
    core.terms.putType('transcode', { type: 'transcode', concurrencyKeyLimit: 2 }, NOW);
    given(...[1, 2, 3, 4].map((n) => () => log.ingest(n, { concurrencyKey: 'gpu' })), () => log.ingest(5));
    expect(named(run())).toEqual(['queue 1', 'queue 2', 'queue 5']);
    given(...ends(world, 1));
    expect(named(run())).toEqual(['queue 3']);
    core.terms.putType('transcode', { type: 'transcode', concurrencyKeyLimit: 3 }, NOW);
    expect(named(run())).toEqual(['queue 4']);
  });

  it('run one at a time when nothing is set, the best class first', () => {
    const world = coreWorld(wide);
    const { log, given, run } = world;
    given(
      () => log.ingest(1, { concurrencyKey: 'gpu', priority: 4 }),
      () => log.ingest(2, { concurrencyKey: 'gpu', priority: 1 }),
      () => log.ingest(3, { concurrencyKey: 'gpu', priority: 1 }),
    );
    expect(named(run())).toEqual(['queue 2']);
    given(...ends(world, 2));
    expect(named(run())).toEqual(['queue 3']);
    given(...ends(world, 3));
    expect(named(run())).toEqual(['queue 1']);
  });

  it('do not hold the key while they wait for a retry', () => {
    const world = coreWorld(wide);
    const { log, given, run } = world;
    given(
      () => log.ingest(1, { concurrencyKey: 'gpu' }),
      () => log.ingest(2, { concurrencyKey: 'gpu' }),
    );
    run();
    given(...starts(world, 1), () => log.fail(taskIdOf(1)));
    expect(named(run())).toContain('queue 2');
  });
});
