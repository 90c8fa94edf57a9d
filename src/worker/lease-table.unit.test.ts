import { describe, expect, test } from 'vitest';
import { LeaseRenewal } from './lease-renewal.ts';
import { type Lease, LeaseTable } from './lease-table.ts';

const lease = (over: Partial<Lease> = {}): Lease => ({
  task: 'acme/01890a5d-ac96-774b-bcce-b302099a8057',
  attempt: 2,
  ackSubject: '$JS.ACK.TASKS.work_transcode.1.4.4.1795984037061136587.0',
  ackWaitMs: 900,
  renewUntil: Number.POSITIVE_INFINITY,
  confirmedAt: 1_000,
  ...over,
});

/** Both sides over the same memory, as in two threads. */
function setup({ slots = 3, maxBlockedMs = 5_000 } = {}) {
  const main = LeaseTable.create(slots);
  main.tick(1_000);
  const renewal = new LeaseRenewal({ table: new LeaseTable(main.shared), maxBlockedMs });
  return { main, renewal, other: new LeaseTable(main.shared) };
}

describe('the lease table', () => {
  test('shows the other side what was taken, and nothing after the release', () => {
    const { main, other } = setup();
    const slot = main.take(lease());
    expect(other.held()).toMatchObject([{ ...lease(), slot }]);
    main.release(slot);
    expect(other.held()).toEqual([]);
  });

  test('gives no more slots than it has, and gives a released one again', () => {
    const { main } = setup({ slots: 2 });
    const first = main.take(lease());
    expect(main.take(lease())).not.toBe(first);
    expect(main.take(lease())).toBe(-1);
    main.release(first);
    expect(main.take(lease())).toBe(first);
  });

  test('a shorter text leaves nothing of the longer one before it', () => {
    const { main, other } = setup({ slots: 1 });
    main.release(main.take(lease({ ackSubject: '$JS.ACK.'.padEnd(600, 'x') })));
    main.take(lease({ ackSubject: '$JS.ACK.short' }));
    expect(other.held()[0]?.ackSubject).toBe('$JS.ACK.short');
  });

  test('a confirmation reaches the main side', () => {
    const { main, other } = setup();
    const slot = main.take(lease());
    const generation = other.held()[0]?.generation ?? 0;
    other.confirm(slot, generation, 1_300);
    expect(main.confirmedAt(slot)).toBe(1_300);
  });

  test('a late confirmation of an earlier holding does not touch the present one', () => {
    const { main, other } = setup({ slots: 1 });
    const slot = main.take(lease());
    const generation = other.held()[0]?.generation ?? 0;
    main.release(slot);
    main.take(lease({ confirmedAt: 2_000 }));
    other.confirm(slot, generation, 9_000);
    expect(main.confirmedAt(slot)).toBe(2_000);
  });
});

describe('renewal', () => {
  test('is due a third of the ack-wait after the delivery, and again a third after that', () => {
    const { main, renewal } = setup();
    main.take(lease());
    expect(renewal.due(1_299)).toEqual([]);
    const [due] = renewal.due(1_300);
    if (due === undefined) throw new Error('not due');
    renewal.sent(due, 1_300);
    renewal.confirmed(due, 1_300);
    expect(renewal.due(1_599)).toEqual([]);
    expect(renewal.due(1_600)).toHaveLength(1);
  });

  test('is due at once after one that was not answered, and the lease counts from the last that was', () => {
    const { main, renewal } = setup();
    const slot = main.take(lease());
    const [due] = renewal.due(1_300);
    if (due === undefined) throw new Error('not due');
    renewal.sent(due, 1_300);
    expect(renewal.due(1_310)).toEqual([]);
    renewal.unanswered(due);
    expect(renewal.due(1_320)).toHaveLength(1);
    expect(main.confirmedAt(slot)).toBe(1_000);
  });

  test('a slot taken anew is judged by its own delivery', () => {
    const { main, renewal } = setup({ slots: 1 });
    const slot = main.take(lease());
    const [due] = renewal.due(1_300);
    if (due === undefined) throw new Error('not due');
    renewal.sent(due, 1_300);
    main.release(slot);
    main.take(lease({ confirmedAt: 1_290 }));
    expect(renewal.due(1_589)).toEqual([]);
    expect(renewal.due(1_590)).toHaveLength(1);
  });

  test('goes on while the main loop is stuck, and ends when it is stuck for too long', () => {
    const { main, renewal } = setup({ maxBlockedMs: 5_000 });
    main.take(lease());
    expect(renewal.alive(6_000)).toHaveLength(1);
    expect(renewal.alive(6_001)).toEqual([]);
    expect(renewal.blockedMs(6_001)).toBe(5_001);
    main.tick(6_500);
    expect(renewal.alive(6_501)).toHaveLength(1);
  });

  test('ends when the attempt is past its time', () => {
    const { main, renewal } = setup();
    const slot = main.take(lease({ renewUntil: 1_500 }));
    expect(renewal.alive(1_500)).toHaveLength(1);
    expect(renewal.alive(1_501)).toEqual([]);
    main.setRenewUntil(slot, Number.POSITIVE_INFINITY);
    expect(renewal.alive(1_501)).toHaveLength(1);
  });

  test('a loop that is late by less than a second is not called blocked', () => {
    const { renewal } = setup();
    expect(renewal.blockedMs(2_000)).toBe(0);
  });
});
