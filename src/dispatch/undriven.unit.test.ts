import { describe, expect, test } from 'vitest';
import { carry, claim, complete, fail, given, ingest, lose, queue, start } from '../../test/support/life.ts';
import type { Command } from '../domain/commands.ts';
import { createLogger } from '../observe/log.ts';
import type { Fleet } from '../registry/fleet.ts';
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

describe('an attempt', () => {
  const ACK_WAIT_MS = 1_000;
  const PATIENCE_MS = 500;
  type Told = Awaited<ReturnType<Fleet['askAfter']>>;

  /** Of one holder, that was heard of at 0 unless told otherwise. */
  const setup = (bucket: Told, { heard = true, reports = true } = {}) => {
    const world = { bucket, heardAt: heard ? 0 : undefined, reports } as {
      bucket: Told;
      heardAt: number | undefined;
      reports: boolean;
    };
    let clock = 0;
    const lost = new LostWorkers({
      attempts: {
        byHolder: () => new Map([['w1', [{ tenant: 'acme', taskId: 't', attempt: 1, holder: 'w1' }]]]),
      },
      fleet: {
        sightOf: () =>
          world.heardAt === undefined
            ? undefined
            : {
                silentMs: clock - world.heardAt,
                patienceMs: PATIENCE_MS,
                reports: () => world.reports,
              },
        askAfter: async () => world.bucket,
      },
      ackWaitMs: ACK_WAIT_MS,
    });
    const at = async (now: number) => {
      clock = now;
      return (await lost.find(now, 10)).map(({ reason }) => reason);
    };
    return { world, at };
  };

  test('is lost when its worker has been silent for its patience and an ack-wait, though the registry remembers it', async () => {
    for (const told of ['same', 'gone'] as const) {
      const { at } = setup(told);
      expect([await at(0), await at(1_499)]).toEqual([[], []]);
      await at(1_500);
      expect(await at(2_500)).toEqual(['worker_gone']);
    }
    expect(await setup('same').at(1_500)).toEqual(['worker_gone']);
  });

  test('is not lost when the bucket has an entry that was not heard of', async () => {
    const { at } = setup('written');
    expect([await at(1_500), await at(60_000)]).toEqual([[], []]);
  });

  test('is lost a whole ack-wait after its worker was seen to have left', async () => {
    const { at } = setup('gone', { heard: false });
    expect([await at(0), await at(999), await at(1_000)]).toEqual([[], [], ['worker_gone']]);
  });

  test('has the whole wait again when its worker comes back in between', async () => {
    const { world, at } = setup('gone', { heard: false });
    await at(0);
    world.bucket = 'written';
    await at(900);
    world.bucket = 'gone';
    expect([await at(1_000), await at(1_900), await at(2_000)]).toEqual([[], [], ['worker_gone']]);
  });

  test('is lost when its worker lives and has not reported it for its patience and an ack-wait', async () => {
    const { world, at } = setup('same', { reports: false });
    const from = async (first: number, last: number) => {
      const found: string[][] = [];
      for (let now = first; now <= last; now += 100) {
        world.heardAt = now;
        found.push(await at(now));
      }
      return found.flat();
    };
    expect(await from(0, 1_400)).toEqual([]);
    world.reports = true;
    expect(await from(1_500, 1_500)).toEqual([]);
    world.reports = false;
    expect(await from(1_600, 3_000)).toEqual([]);
    expect(await from(3_100, 3_100)).toEqual(['lease_expired']);
  });

  test('that its worker reports is left alone, however long it takes', async () => {
    const { world, at } = setup('same');
    for (let now = 0; now < 100_000; now += 400) {
      world.heardAt = now;
      expect(await at(now)).toEqual([]);
    }
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
