import { describe, expect, test } from 'vitest';
import { carry, claim, complete, fail, given, ingest, lose, queue, start } from '../../test/support/life.ts';
import type { Command } from '../domain/commands.ts';
import { createLogger } from '../observe/log.ts';
import { LostWorkers } from './lost-workers.ts';
import { NoWorkers } from './no-workers.ts';
import { RunningAttempts } from './running-attempts.ts';
import { isLost, type Offer, UnclaimedWork } from './unclaimed-work.ts';

const offer = (seq: number, key = 'transcode'): Offer =>
  ({ tenant: 'acme', id: `${seq}`, seq, line: { key, type: key, version: 1 } }) as unknown as Offer;

describe('an offer', () => {
  test('is a suspect when it was there, unmoved, a pass before', () => {
    const unclaimed = new UnclaimedWork();
    const [moved, stays] = [offer(3), offer(5)];
    expect(unclaimed.take([moved, stays])).toEqual([]);
    const again = { ...moved, seq: 9 } as Offer;
    expect(unclaimed.take([again, stays])).toMatchObject([{ offers: [stays], oldestSeq: 5 }]);
  });

  test('comes with the oldest of its line, suspect or not', () => {
    const unclaimed = new UnclaimedWork();
    const stays = offer(7);
    unclaimed.take([stays]);
    const [suspects] = unclaimed.take([offer(4), stays, offer(1, 'other')]);
    expect(suspects).toMatchObject({ type: 'transcode', oldestSeq: 4, offers: [stays] });
  });

  test.each([
    { ackedUpTo: 10, deliveredUpTo: 10, ackPending: 0, lost: true, why: 'acked away' },
    { ackedUpTo: 3, deliveredUpTo: 10, ackPending: 0, lost: true, why: 'delivered, and nothing un-acked' },
    { ackedUpTo: 3, deliveredUpTo: 10, ackPending: 1, lost: false, why: 'perhaps with a worker' },
    { ackedUpTo: 3, deliveredUpTo: 4, ackPending: 0, lost: false, why: 'yet to be delivered' },
  ])('$why: lost is $lost', ({ lost, ...consumer }) => {
    expect(isLost({ seq: 5 }, consumer)).toBe(lost);
  });
});

describe('who runs what', () => {
  const heldAfter = (...life: Command[]) => {
    const attempts = new RunningAttempts();
    for (const { event } of given(...life).events) attempts.observe(event);
    return [...attempts.byHolder()].map(([holder, of]) => [holder, of.map(({ attempt }) => attempt)]);
  };
  const running = [ingest(), queue(), claim(), start()];

  test('is known while the attempt runs, over a renewal too', () => {
    expect(heldAfter(ingest(), queue(), claim())).toEqual([['w1', [1]]]);
    expect(heldAfter(...running, carry())).toEqual([['w1', [1]]]);
  });

  test('is forgotten when the attempt has ended, however', () => {
    expect(heldAfter(...running, complete())).toEqual([]);
    expect(heldAfter(...running, fail())).toEqual([]);
    expect(heldAfter(...running, lose())).toEqual([]);
  });
});

describe('a worker that has left', () => {
  const attempts = {
    byHolder: () => new Map([['w1', [{ tenant: 'acme', taskId: 't', attempt: 1, holder: 'w1' }]]]),
  };
  const found = (fleet: { lives: boolean; registered: boolean }) => {
    const lost = new LostWorkers({
      attempts,
      fleet: { lives: () => fleet.lives, isRegistered: async () => fleet.registered },
      ackWaitMs: 1_000,
    });
    return async (now: number) => (await lost.find(now, 10)).length;
  };

  test('loses its attempts a whole ack-wait after its entry was seen to be gone', async () => {
    const at = found({ lives: false, registered: false });
    expect([await at(0), await at(999), await at(1_000)]).toEqual([0, 0, 1]);
  });

  test('has not left while it writes, or while its entry is there', async () => {
    for (const fleet of [
      { lives: true, registered: false },
      { lives: false, registered: true },
    ]) {
      const at = found(fleet);
      expect([await at(0), await at(5_000)]).toEqual([0, 0]);
    }
  });

  test('that comes back starts the wait anew', async () => {
    const fleet = { lives: false, registered: false };
    const at = found(fleet);
    await at(0);
    fleet.registered = true;
    await at(900);
    fleet.registered = false;
    expect([await at(1_000), await at(1_900), await at(2_000)]).toEqual([0, 0, 1]);
  });
});

describe('the alarm for tasks that nobody can run', () => {
  const lines = (waiting: number) => [{ key: 'transcode', type: 'transcode', version: 1, waiting }];
  const setup = () => {
    const fleet = { served: false };
    const alarms = new NoWorkers({ serves: () => fleet.served }, createLogger({ logLevel: 'silent' }));
    return { fleet, look: (waiting: number, now: number) => alarms.look(lines(waiting), now).length };
  };

  test('comes after five seconds without a worker, and ends with one', () => {
    const { fleet, look } = setup();
    expect([look(3, 0), look(3, 4_000), look(3, 5_000), look(3, 9_000)]).toEqual([0, 0, 1, 1]);
    fleet.served = true;
    expect(look(3, 10_000)).toBe(0);
    fleet.served = false;
    expect([look(3, 11_000), look(3, 16_000)]).toEqual([0, 1]);
  });

  test('does not come for a type of which nothing waits', () => {
    const { look } = setup();
    expect([look(0, 0), look(0, 60_000)]).toEqual([0, 0]);
  });
});
