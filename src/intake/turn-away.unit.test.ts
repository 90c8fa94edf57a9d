import { headers } from '@nats-io/transport-node';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { memoryLog } from '../../test/support/memory-log.ts';
import { TaskledgerError } from '../domain/errors.ts';
import { taskIdOfKey } from './identity.ts';
import { createIntake } from './intake.ts';
import { type Receipt, receive } from './receipt.ts';
import { turnAway } from './turn-away.ts';

const NOW = 1_800_000_000_000;
const full = new TaskledgerError('tenant_backlog_full', { tenant: 'acme', waiting: 9, limit: 9 });

interface Sent {
  readonly seq: number;
  readonly key?: string;
  readonly body?: Record<string, unknown>;
}

/** The intake as it is, over a log in memory. Each delivery of a message after its first is a redelivery. */
function setup() {
  const log = { ...memoryLog(), bounds: async () => ({ firstSeq: 1, lastSeq: log.events.length }) };
  const clock = { now: () => NOW };
  const intake = createIntake({
    log,
    types: { get: () => undefined },
    config: { maxPayloadBytes: 1_000, maxPayloadDepth: 8, hotWindowHours: 24 },
    windows: { clock, places: { change: async () => ({ id: taskIdOfKey('acme', 'place'), seq: 0 }) } },
    clock,
    backlog: { full: () => undefined },
  });
  const parts = { intake, tenants: { get: () => ({}) } };
  const delivered = new Set<number>();
  const deliver = ({ seq, key, body = {} }: Sent) => {
    const hdrs = headers();
    if (key !== undefined) hdrs.set('Idempotency-Key', key);
    const data = new TextEncoder().encode(JSON.stringify({ payload: 1, ...body }));
    const message = {
      data,
      headers: hdrs,
      seq,
      timestampNanos: BigInt(seq),
      redelivered: delivered.has(seq),
    };
    delivered.add(seq);
    return message;
  };
  const address = { tenant: 'acme', type: 'mail' };
  return {
    take: (sent: Sent) => receive(deliver(sent), address, parts),
    turn: (sent: Sent) => turnAway(deliver(sent), address, full, parts),
    kinds: () => log.events.map(({ event }) => event.kind),
    log,
  };
}

describe('a message that is turned away', () => {
  test('is REJECTED with the reason and the way out', async () => {
    const { turn, log } = setup();
    const receipt = await turn({ seq: 7 });
    expect(receipt).toMatchObject({
      outcome: 'tenant_backlog_full',
      answer: { ok: false, seq: 1, error: { message: expect.stringMatching(/limit is 9.*again later/) } },
    });
    expect(log.events[0]?.event).toMatchObject({
      kind: 'REJECTED',
      taskId: receipt?.taskId,
      data: { reasons: [{ code: 'tenant_backlog_full' }] },
    });
  });

  test('leaves its key free: the same key sent again is taken', async () => {
    const { turn, take, kinds } = setup();
    const refused = await turn({ seq: 1, key: 'order-1' });
    const taken = await take({ seq: 2, key: 'order-1' });
    expect(taken.answer).toMatchObject({ ok: true, id: taskIdOfKey('acme', 'order-1'), replayed: false });
    expect(refused?.taskId).not.toBe(taken.taskId);
    expect(kinds()).toEqual(['REJECTED', 'INGESTED']);
  });

  test.each([
    ['with a key', { key: 'order-1' }],
    ['without a key', {}],
    ['with a throttle key', { body: { throttle: { key: 'k', windowMs: 1_000 } } }],
  ])('%s and comes again is answered the same, whether there is room or not', async (_, sent) => {
    const { turn, take, kinds } = setup();
    const first = await turn({ seq: 1, ...sent });
    expect(await take({ seq: 1, ...sent })).toEqual(first);
    const again = await turn({ seq: 1, ...sent });
    // Of joined submissions it cannot be known in a crowd: they are answered when there is room.
    if (again !== undefined) expect(again).toEqual(first);
    expect(kinds()).toEqual(['REJECTED']);
  });
});

describe('a message that was taken', () => {
  test.each([
    ['with a key', { key: 'order-1' }],
    ['without a key', {}],
  ])('%s and comes again in a crowd is answered as taken', async (_, sent) => {
    const { turn, take, kinds } = setup();
    const { answer } = await take({ seq: 1, ...sent });
    expect((await turn({ seq: 1, ...sent }))?.answer).toEqual({ ...answer, replayed: true });
    expect(kinds()).toEqual(['INGESTED']);
  });

  test('with a throttle key and comes again in a crowd waits until there is room', async () => {
    const { turn, take, kinds } = setup();
    const sent = { seq: 1, body: { throttle: { key: 'k', windowMs: 1_000 } } };
    await take(sent);
    expect(await turn(sent)).toBeUndefined();
    expect(kinds()).toEqual(['INGESTED']);
  });
});

test('however often messages come, and whether there is room or not, each is taken or refused once and for all', async () => {
  const delivery = fc.record({
    seq: fc.integer({ min: 1, max: 6 }),
    room: fc.boolean(),
  });
  const sentAs = (seq: number): Sent => ({
    seq,
    ...(seq <= 3 ? { key: `key-${seq % 2}` } : {}),
    ...(seq === 6 ? { body: { throttle: { key: 'k', windowMs: 1_000 } } } : {}),
  });
  await fc.assert(
    fc.asyncProperty(fc.array(delivery, { maxLength: 30 }), async (deliveries) => {
      const { turn, take } = setup();
      const receipts = new Map<number, Receipt>();
      for (const { seq, room } of deliveries) {
        const receipt = await (room ? take : turn)(sentAs(seq));
        if (receipt === undefined) continue;
        const { ok, id, seq: stored } = (receipts.get(seq) ?? receipt).answer;
        expect(receipt.answer).toMatchObject({ ok, id, seq: stored });
        receipts.set(seq, receipt);
      }
    }),
  );
});
