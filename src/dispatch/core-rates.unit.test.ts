import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { coreWorld, dispatcher, NOW, named } from '../../test/support/core-world.ts';
import { taskIdOf } from '../../test/support/fenced-log.ts';
import type { Decision } from './decisions.ts';

const createdAt = '2026-01-01T00:00:00.000Z';
const wide = { window: { min: 100, max: 100, ms: 1 } };

describe('a limit of rate', () => {
  it('lets a burst through, then one at a time as time passes, and says when to come back', () => {
    const { core, log, given, decisions, run } = coreWorld(wide);
    core.terms.putTenant('acme', { name: 'acme', createdAt, limits: { ratePerSecond: 2, burst: 3 } }, NOW);
    given(...[1, 2, 3, 4, 5].map((n) => () => log.ingest(n)));
    expect(run()).toHaveLength(3);
    expect(core.nextWakeAt()).toBe(NOW + 500);
    log.now = NOW + 499;
    core.advance(log.now);
    expect(decisions()).toEqual([]);
    log.now = NOW + 500;
    core.advance(log.now);
    expect(named(run())).toEqual(['queue 4']);
    log.now = NOW + 1_000;
    core.advance(log.now);
    expect(named(decisions())).toEqual(['queue 5']);
  });

  it('is paid for by what the log says was queued, also by another leader', () => {
    const before = coreWorld(wide);
    before.given(...[1, 2, 3].map((n) => () => before.log.ingest(n)));
    before.run();
    before.log.ingest(4);
    const after = coreWorld({ ...wide, phase: 'replaying' });
    const limits = { ratePerSecond: 1, burst: 3 };
    after.core.terms.putTenant('acme', { name: 'acme', createdAt, limits }, NOW - 60_000);
    for (const recorded of before.log.events) after.core.observe(recorded);
    after.core.enter('leading');
    after.core.advance(NOW);
    expect(after.decisions()).toEqual([]);
    after.log.now = NOW + 1_000;
    after.core.advance(NOW + 1_000);
    expect(named(after.decisions())).toEqual(['queue 4']);
  });

  it('is filled by the time between what the log says was queued, also for who reads of it long after', () => {
    const { core, log, decisions } = coreWorld({ ...wide, phase: 'replaying' });
    const limits = { ratePerSecond: 1, burst: 3 };
    for (let n = 1; n <= 20; n += 1) {
      log.ingest(n);
      log.do(taskIdOf(n), dispatcher, { kind: 'queue', inlinePayload: true });
      log.now += 1_000;
    }
    log.ingest(21);
    core.terms.putTenant('acme', { name: 'acme', createdAt, limits }, log.now);
    for (const recorded of log.events) core.observe(recorded);
    core.enter('leading');
    core.advance(log.now);
    expect(named(decisions())).toEqual(['queue 21']);
  });

  it('of one type leaves the other types of the tenant alone', () => {
    const { core, log, given, decisions } = coreWorld(wide);
    const types = { transcode: { ratePerSecond: 1 } };
    core.terms.putTenant('acme', { name: 'acme', createdAt, types }, NOW);
    given(
      ...[1, 2].map((n) => () => log.ingest(n)),
      ...[3, 4].map((n) => () => log.ingest(n, { type: 'x' })),
    );
    expect(named(decisions())).toEqual(['queue 1', 'queue 3', 'queue 4']);
  });

  it('is not held against it for long when more was queued under other settings', () => {
    const { core, log, decisions } = coreWorld({ ...wide, phase: 'replaying' });
    core.terms.putTenant('acme', { name: 'acme', createdAt, limits: { ratePerSecond: 1, burst: 2 } }, NOW);
    for (let n = 1; n <= 50; n += 1) {
      log.ingest(n);
      log.do(taskIdOf(n), dispatcher, { kind: 'queue', inlinePayload: true });
    }
    log.ingest(51);
    for (const recorded of log.events) core.observe(recorded);
    core.enter('leading');
    log.now += 3_000;
    core.advance(log.now);
    expect(named(decisions())).toEqual(['queue 51']);
  });

  it('hands nothing out beyond a burst while the log does not answer, and goes on when it does', () => {
    const { core, log, given, decisions, append } = coreWorld(wide);
    core.terms.putTenant('acme', { name: 'acme', createdAt, limits: { ratePerSecond: 2, burst: 3 } }, NOW);
    given(...[1, 2, 3, 4, 5].map((n) => () => log.ingest(n)));
    const underWay = decisions();
    expect(underWay).toHaveLength(3);
    log.now += 60_000;
    core.advance(log.now);
    expect(decisions()).toEqual([]);
    expect(core.explain('acme', taskIdOf(4), log.now)).toEqual([
      { kind: 'limit', limit: 'tenant_rate', value: 2 },
    ]);
    given(...underWay.map((decision) => () => append(decision)));
    expect(decisions()).toEqual([]);
    log.now += 500;
    core.advance(log.now);
    expect(named(decisions())).toEqual(['queue 4']);
  });

  it('costs nothing when somebody moved the task before it was queued', () => {
    const { core, log, given, decisions } = coreWorld(wide);
    core.terms.putTenant('acme', { name: 'acme', createdAt, limits: { ratePerSecond: 1, burst: 1 } }, NOW);
    given(
      () => log.ingest(1),
      () => log.ingest(2),
    );
    const [first] = decisions();
    if (first === undefined) throw new Error('nothing was decided');
    log.do(taskIdOf(1), dispatcher, { kind: 'request_cancel' });
    core.refused(first.task, first.seq);
    given();
    expect(named(decisions())).toEqual(['queue 2']);
  });

  it('lets through no more than rate * t and a burst in any time t of the log, however long appends take', () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('ingest' as const), count: fc.integer({ min: 1, max: 6 }) }),
      fc.record({ do: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 1_500 }) }),
      fc.record({
        do: fc.constantFrom('store' as const, 'refuse' as const, 'unheard' as const),
        pick: fc.nat(20),
      }),
    );
    fc.assert(
      fc.property(
        fc.record({ ratePerSecond: fc.constantFrom(0.7, 2, 5), burst: fc.integer({ min: 1, max: 4 }) }),
        fc.array(step, { minLength: 10, maxLength: 120 }),
        (limits, steps) => {
          const { core, log, given, decisions, append } = coreWorld(wide);
          core.terms.putTenant('acme', { name: 'acme', createdAt, limits }, NOW);
          const underWay: Decision[] = [];
          let tasks = 0;
          for (const each of steps) {
            if (each.do === 'ingest')
              for (let n = 0; n < each.count; n += 1) given(() => log.ingest(tasks++));
            else if (each.do === 'wait') log.now += each.ms;
            else {
              const [one] = underWay.splice(each.pick % Math.max(1, underWay.length), 1);
              if (one === undefined) continue;
              if (each.do === 'store') append(one);
              if (each.do === 'refuse') core.refused(one.task, one.seq);
              if (each.do === 'unheard') {
                core.unresolved(one.task, one.seq, log.now + 500);
                if (each.pick % 2 === 0) append(one);
              }
            }
            given();
            core.advance(log.now);
            underWay.push(...decisions());
          }
          let excess = 0;
          let before = NOW;
          for (const { storedAt, event } of log.events) {
            if (event.kind !== 'QUEUED') continue;
            excess = Math.max(0, excess - ((storedAt - before) * limits.ratePerSecond) / 1_000) + 1;
            before = storedAt;
            expect(excess).toBeLessThanOrEqual(limits.burst + 0.001);
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});
