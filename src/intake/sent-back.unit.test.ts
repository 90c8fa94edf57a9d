import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SentBack } from './sent-back.ts';

/** Sends back so many messages of each tenant, all due after a minute. */
function holding(counts: Readonly<Record<string, number>>, few = 1): SentBack {
  const sent = new SentBack(few);
  let seq = 0;
  for (const [tenant, count] of Object.entries(counts))
    for (let i = 0; i < count; i += 1) {
      seq += 1;
      sent.add({ tenant, seq, dueAt: 60_000 });
    }
  return sent;
}

const atTheLimit = { pending: 100, limit: 100 };

describe('messages that were sent back', () => {
  test('are forgotten when they come again, and once their time has passed', () => {
    const sent = new SentBack(1);
    sent.add({ tenant: 'a', seq: 1, dueAt: 2_000 });
    sent.add({ tenant: 'a', seq: 2, dueAt: 2_000 });
    sent.add({ tenant: 'a', seq: 3, dueAt: 4_000 });
    sent.cameAgain(1);
    expect(sent.of('a')).toBe(2);
    sent.forgetDue(1_999);
    expect(sent.of('a')).toBe(2);
    sent.forgetDue(2_000);
    expect(sent.of('a')).toBe(1);
    sent.forgetDue(9_000);
    expect(sent.of('a')).toBe(0);
  });

  test('count once, however often they are sent back', () => {
    const sent = new SentBack(1);
    for (const dueAt of [2_000, 4_000, 8_000]) sent.add({ tenant: 'a', seq: 1, dueAt });
    sent.forgetDue(7_000);
    expect(sent.of('a')).toBe(1);
  });
});

describe('an equal share', () => {
  test('is had by the tenant that floods, and not by the modest ones beside it', () => {
    const sent = holding({ flood: 90, modest: 6, small: 4 });
    expect(['flood', 'modest', 'small', 'new'].filter((t) => sent.hasShare(t, atTheLimit))).toEqual([
      'flood',
    ]);
  });

  test('is had by the only tenant, and by all that have as much', () => {
    expect(holding({ only: 5 }).hasShare('only', atTheLimit)).toBe(true);
    const sent = holding({ a: 5, b: 5 });
    expect(['a', 'b'].filter((tenant) => sent.hasShare(tenant, atTheLimit))).toEqual(['a', 'b']);
  });

  test('is of the limit when more than that waits, so that late comers cannot each bring as much again', () => {
    const sent = holding({ first: 100, second: 60 });
    expect(sent.hasShare('second', atTheLimit)).toBe(false);
    expect(sent.hasShare('second', { pending: 160, limit: 100 })).toBe(true);
  });

  test('is not known from a few messages', () => {
    expect(holding({ a: 31 }, 32).hasShare('a', atTheLimit)).toBe(false);
    expect(holding({ a: 32 }, 32).hasShare('a', atTheLimit)).toBe(true);
  });

  test('is had by somebody, whatever waits, unless nobody has more than a few', () => {
    fc.assert(
      fc.property(
        fc.dictionary(fc.constantFrom('a', 'b', 'c', 'd', 'e'), fc.integer({ min: 1, max: 60 })),
        fc.integer({ min: 1, max: 20 }),
        fc.integer({ min: 1, max: 300 }),
        (counts, few, pending) => {
          const sent = holding(counts, few);
          const judged = { pending, limit: 100 };
          const held = Object.keys(counts).filter((tenant) => sent.hasShare(tenant, judged));
          const most = Math.max(0, ...Object.values(counts));
          expect(held.length > 0).toBe(most >= few);
          // Never the smaller and not the greater.
          for (const [tenant, count] of Object.entries(counts))
            if (held.some((other) => (counts[other] ?? 0) <= count)) expect(held).toContain(tenant);
        },
      ),
    );
  });
});

test('counts what a list of all messages counts', () => {
  const move = fc.oneof(
    fc.record({
      kind: fc.constant('add' as const),
      tenant: fc.constantFrom('a', 'b'),
      seq: fc.nat(8),
      forMs: fc.integer({ min: 1, max: 5_000 }),
    }),
    fc.record({ kind: fc.constant('again' as const), seq: fc.nat(8) }),
    fc.record({ kind: fc.constant('pass' as const), ms: fc.nat(3_000) }),
  );
  fc.assert(
    fc.property(fc.array(move, { maxLength: 60 }), (moves) => {
      const sent = new SentBack(1);
      const list = new Map<number, { tenant: string; until: number }>();
      let now = 0;
      for (const next of moves) {
        if (next.kind === 'pass') now += next.ms;
        else if (next.kind === 'again') {
          sent.cameAgain(next.seq);
          list.delete(next.seq);
        } else {
          const { tenant, seq, forMs } = next;
          sent.add({ tenant, seq, dueAt: now + forMs });
          list.set(seq, { tenant, until: Math.ceil((now + forMs) / 1_000) * 1_000 });
        }
        sent.forgetDue(now);
        for (const tenant of ['a', 'b'])
          expect(sent.of(tenant)).toBe(
            [...list.values()].filter((held) => held.tenant === tenant && held.until > now).length,
          );
      }
    }),
  );
});
