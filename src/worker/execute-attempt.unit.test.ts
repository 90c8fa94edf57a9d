import { describe, expect, test } from 'vitest';
import { eventually } from '../../test/support/eventually.ts';
import { given, ingest, lose, queue, TASK_ID } from '../../test/support/life.ts';
import { memoryLog } from '../../test/support/memory-log.ts';
import { encodeEvent } from '../domain/codec.ts';
import type { CommandOf } from '../domain/commands.ts';
import { execute } from '../log/handle.ts';
import { silentLogger } from '../observe/log.ts';
import type { Attempt } from './attempt.ts';
import type { Bench } from './bench.ts';
import type { Delivery } from './delivery.ts';
import { executeAttempt } from './execute-attempt.ts';
import { type Handler, runnable } from './handler.ts';
import { newCounters } from './hooks.ts';
import type { Standing } from './redelivery.ts';
import { noSpool } from './spool/spool.ts';

const TENANT = 'acme';

/** A bench over a log in memory that holds one queued task, and what was told to the ack subject. */
async function setup({
  handler = () => 'done',
  standing = 'gone',
  over = {},
  task = {},
}: {
  handler?: Handler;
  standing?: Standing;
  over?: Partial<Bench>;
  task?: Partial<CommandOf<'ingest'>>;
} = {}) {
  const log = memoryLog();
  const told: string[] = [];
  for (const { event, seq } of given(ingest(task), queue()).events) await log.append(event, seq / 10 - 1);
  const leases = { take: () => 0, release: () => {}, setRenewUntil: () => {}, showProgress: () => {} };
  const bench: Bench = {
    log,
    actor: { kind: 'worker', id: 'me' },
    clock: { now: () => Date.parse('2026-01-01T00:00:00Z') },
    dice: () => 0.5,
    runnables: new Map([['transcode', runnable(handler as Handler<never>)]]),
    leases,
    ackWaitMs: () => 600,
    active: new Map<string, Attempt>(),
    standingOf: async () => standing,
    tell: (_subject, word) => told.push(word),
    abortGraceMs: 20,
    carryEveryMs: 3_600_000,
    resultLimits: { maxBytes: 10_000, maxDepth: 16 },
    spool: noSpool,
    abandoned: () => false,
    counters: newCounters(),
    hooks: {},
    logger: silentLogger,
    ...over,
  };
  const queued = log.events[1]?.event;
  if (queued === undefined) throw new Error('nothing is queued');
  const delivery = (deliveryCount = 1): Delivery => ({
    seq: 2,
    deliveryCount,
    storedAt: 0,
    type: 'transcode',
    ackSubject: '$JS.ACK.x',
    data: Buffer.from(encodeEvent(queued)),
    receivedAt: 0,
  });
  return {
    bench,
    log,
    delivery,
    told,
    counters: bench.counters,
    kinds: () => log.events.map(({ event }) => event.kind).slice(2),
    run: (deliveryCount?: number) => executeAttempt(bench, delivery(deliveryCount)),
    claimAs: async (worker: string) => {
      const command = { eventId: crypto.randomUUID(), at: 1, actor: { kind: 'worker', id: worker } } as const;
      const known = await log.readState(TENANT, TASK_ID);
      if (known !== undefined)
        await execute(log, { tenant: TENANT, taskId: TASK_ID, known }, () => ({ ...command, kind: 'claim' }));
    },
  };
}

describe('one delivery', () => {
  test('is claimed, run, settled and acked', async () => {
    const { run, kinds, told } = await setup();
    await run();
    expect(kinds()).toEqual(['CLAIMED', 'PROCESSING', 'COMPLETED']);
    expect(told).toEqual(['+ACK']);
  });

  test('that cannot be read is never delivered again', async () => {
    const { bench, told, delivery } = await setup();
    await executeAttempt(bench, { ...delivery(), data: Buffer.from('{"v":1') });
    expect(told).toEqual(['+TERM']);
  });

  test('of a task that somebody else has claimed and runs is handed back with a delay', async () => {
    const { run, claimAs, kinds, told } = await setup({ standing: 'reports' });
    await claimAs('other');
    await run();
    expect(kinds()).toEqual(['CLAIMED']);
    expect(told).toEqual(['-NAK {"delay":100000000}']);
  });

  test('of a task whose holder is gone makes its attempt lost, and runs nothing', async () => {
    const { run, claimAs, kinds, told, counters } = await setup({ standing: 'gone' });
    await claimAs('other');
    await run(2);
    expect(kinds()).toEqual(['CLAIMED', 'RETRY_CLAIMED']);
    expect(told).toEqual(['+ACK']);
    expect(counters).toMatchObject({ reclaimed: 1, claimed: 0 });
  });

  test('of a task that this worker claimed once and no longer runs makes that attempt lost', async () => {
    const { run, claimAs, kinds } = await setup();
    await claimAs('me');
    await run(2);
    expect(kinds()).toEqual(['CLAIMED', 'RETRY_CLAIMED']);
  });

  test('again, while it still waits, is claimed as usual', async () => {
    const { run, kinds } = await setup();
    await run(7);
    expect(kinds()).toEqual(['CLAIMED', 'PROCESSING', 'COMPLETED']);
  });

  test('whose claim was stored without an answer is left to come again, and then counted as an attempt', async () => {
    const { run, log, kinds, told } = await setup();
    log.fault('CLAIMED', ['unheard']);
    await expect(run()).rejects.toMatchObject({ code: 'log_unavailable' });
    expect(told).toEqual([]);
    await run(2);
    expect(kinds()).toEqual(['CLAIMED', 'RETRY_CLAIMED']);
  });
});

describe('an outcome', () => {
  test('is told until the log has stored it', async () => {
    const { run, log, kinds, told } = await setup();
    log.fault('COMPLETED', ['down', 'down', 'down']);
    await run();
    expect(kinds()).toEqual(['CLAIMED', 'PROCESSING', 'COMPLETED']);
    expect(told).toEqual(['+ACK']);
  });

  test('that was stored without an answer is recognised, and counts once', async () => {
    const { run, log, kinds, told, counters } = await setup();
    log.fault('COMPLETED', ['unheard']);
    await run();
    expect(kinds()).toEqual(['CLAIMED', 'PROCESSING', 'COMPLETED']);
    expect(told).toEqual(['+ACK']);
    expect(counters).toMatchObject({ completed: 1, lost: 0 });
  });

  test('is given up, un-acked, when the worker is abandoned before it could be stored', async () => {
    const { run, log, told, counters } = await setup({ over: { abandoned: () => true } });
    log.fault('COMPLETED', ['down', 'down']);
    await run();
    expect(told).toEqual([]);
    expect(counters).toMatchObject({ completed: 0, lost: 1 });
  });

  test('of an attempt that was taken over is refused, and not acked', async () => {
    const { run, bench, told, kinds, counters } = await setup({
      handler: async () => {
        await execute(bench.log, { tenant: TENANT, taskId: TASK_ID }, () => lose());
        return 'late';
      },
    });
    await run();
    expect(kinds()).toEqual(['CLAIMED', 'PROCESSING', 'RETRY_CLAIMED']);
    expect(told).toEqual([]);
    expect(counters).toMatchObject({ completed: 0, lost: 1 });
  });
});

describe('a long attempt', () => {
  test('announces its task again within the hot window, and settles from there', async () => {
    const { run, kinds } = await setup({
      over: { carryEveryMs: 10 },
      handler: () => eventually(() => kinds().includes('CARRIED')),
    });
    await run();
    const seen = kinds();
    expect(seen.slice(0, 3)).toEqual(['CLAIMED', 'PROCESSING', 'CARRIED']);
    expect(seen.at(-1)).toBe('COMPLETED');
  });
});

test('a payload of null rides with the work item like any other: the log is not read for it', async () => {
  const { run, log, kinds } = await setup({
    task: { payload: null },
    handler: ({ payload }) => ({ got: payload }),
  });
  log.readEvent = () => Promise.reject(new Error('was read'));
  await run();
  expect(kinds()).toEqual(['CLAIMED', 'PROCESSING', 'COMPLETED']);
});

test('a payload that has aged out of the log fails the attempt for good', async () => {
  const { bench, log, delivery } = await setup();
  const queued = log.events[1]?.event;
  if (queued?.kind !== 'QUEUED') throw new Error('nothing is queued');
  const { payload: _payload, ...data } = queued.data;
  const withoutPayload = encodeEvent({ ...queued, data: { ...data, payloadSeq: 99 } });
  await executeAttempt(bench, { ...delivery(), data: Buffer.from(withoutPayload) });
  expect(log.events.at(-1)?.event).toMatchObject({
    kind: 'FAILED',
    data: { error: { code: 'payload_gone' }, next: { final: 'not_retryable' } },
  });
});
