import type { NatsConnection } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { AttemptAborted, defineTask, type HandlerContext, NotRetryable } from '../../src/index.ts';
import { eventually } from '../support/eventually.ts';
import { endless, gate } from '../support/gate.ts';
import { openWorkerRig, TENANT, TYPE, type WorkerRig } from '../support/worker-rig.ts';

let rig: WorkerRig;
beforeAll(async () => {
  rig = await openWorkerRig(import.meta.url);
});
afterEach(() => rig.stopWorkers());
afterAll(() => rig.stop());

const untilAborted = ({ signal }: HandlerContext): Promise<never> =>
  new Promise((_, reject) => {
    if (signal.aborted) reject(signal.reason as Error);
    signal.addEventListener('abort', () => reject(signal.reason as Error));
  });

/** The connection, but for the first message to a subject with this ending: it cannot be sent. */
function failingOnce(nc: NatsConnection, ending: string): NatsConnection {
  let failed = false;
  const publish: NatsConnection['publish'] = (subject, ...rest) => {
    if (failed || !subject.endsWith(ending)) return nc.publish(subject, ...rest);
    failed = true;
    throw new Error('not sent');
  };
  return new Proxy(nc, {
    get(target, property) {
      const value: unknown = Reflect.get(target, property, target);
      if (property === 'publish') return publish;
      return typeof value === 'function' ? (value.bind(target) as unknown) : value;
    },
  });
}

describe('an attempt', () => {
  test('is three events and one ack', async () => {
    const worker = await rig.worker({ types: { [TYPE]: ({ payload }) => ({ got: payload }) } });
    const id = await rig.enqueue({ payload: { clip: 7 } });
    const completed = await rig.event(id, 'COMPLETED');
    expect(completed.data.result).toEqual({ got: { clip: 7 } });
    expect(completed.actor).toEqual({ kind: 'worker', id: worker.id });
    expect(rig.kinds(id)).toEqual(['INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'COMPLETED']);
    await rig.whenAllAcked();
    expect(worker.stats()).toMatchObject({ claimed: 1, completed: 1, running: 0, lost: 0 });
  });

  test('tells its handler what it works on', async () => {
    const seen = gate<HandlerContext>();
    await rig.worker({ types: { [TYPE]: (context) => seen.open(context) } });
    const deadlineAt = Date.now() + 60_000;
    const id = await rig.enqueue({ priority: 1, deadlineAt });
    const context = await seen.opened;
    expect(context.task).toMatchObject({
      id,
      tenant: TENANT,
      type: TYPE,
      priority: 1,
      round: 1,
      attempt: 1,
      deadlineAt,
    });
    expect(context.attempt).toBe(1);
    expect(context.idempotencyKey).toBe(`${TENANT}:${id}`);
    expect(context.signal.aborted).toBe(false);
  });

  test('without a result completes without one', async () => {
    await rig.worker({ types: { [TYPE]: () => undefined } });
    const id = await rig.enqueue();
    expect((await rig.event(id, 'COMPLETED')).data).not.toHaveProperty('result');
  });

  test.each<[string, unknown]>([
    ['an object', { text: 'x'.repeat(20_000) }],
    ['null', null],
  ])('fetches a payload that did not ride with its work item: %s', async (_what, payload) => {
    await rig.worker({ types: { [TYPE]: ({ payload: got }) => ({ got }) } });
    const id = await rig.enqueue({ payload: payload as never }, { inlinePayload: false });
    expect((await rig.event(id, 'COMPLETED')).data.result).toEqual({ got: payload });
  });

  test('that throws is FAILED with its error and the delay of its retry, and acked', async () => {
    await rig.worker({
      types: {
        [TYPE]: () => {
          throw Object.assign(new RangeError('no codec'), { code: 'E_CODEC' });
        },
      },
    });
    const id = await rig.enqueue();
    const { data } = await rig.event(id, 'FAILED');
    expect(data.error).toMatchObject({ name: 'RangeError', message: 'no codec', code: 'E_CODEC' });
    expect(data.next).toHaveProperty('retryInMs');
    await rig.whenAllAcked();
  });

  test('that throws NotRetryable, or an error that the policy calls so, is the last', async () => {
    await rig.worker({
      types: {
        [TYPE]: ({ payload }) => {
          throw payload === 'class' ? new NotRetryable('never') : new SyntaxError('bad');
        },
      },
    });
    const byClass = await rig.enqueue({ payload: 'class' });
    const byPolicy = await rig.enqueue({ payload: 'name', policy: { notRetryable: ['SyntaxError'] } });
    for (const id of [byClass, byPolicy])
      expect((await rig.event(id, 'FAILED')).data.next).toEqual({ final: 'not_retryable' });
  });

  const circular: Record<string, unknown> = {};
  circular['self'] = circular;
  const brokenThenable = new Proxy(
    {},
    {
      get(_target, key) {
        if (key === 'then') throw new Error('then');
        return undefined;
      },
    },
  );
  test.each<[string, () => unknown, string, object]>([
    [
      'throws a non-Error',
      () => {
        throw 'just text';
      },
      'FAILED',
      { error: { name: 'NonError', message: 'thrown: just text' } },
    ],
    [
      'throws undefined',
      () => {
        throw undefined;
      },
      'FAILED',
      { error: { name: 'NonError' } },
    ],
    [
      'throws a circular object',
      () => {
        throw circular;
      },
      'FAILED',
      { error: { name: 'NonError' } },
    ],
    [
      'rejects with a huge error',
      () => Promise.reject(new Error('m'.repeat(2_000_000))),
      'FAILED',
      { error: { name: 'Error' } },
    ],
    [
      'rejects with a NUL in the message',
      () => Promise.reject(new Error('a\0b')),
      'FAILED',
      { error: { message: 'a\uFFFDb' } },
    ],
    [
      'returns a circular object',
      () => circular,
      'FAILED',
      { error: { code: 'result_invalid' }, next: { final: 'not_retryable' } },
    ],
    [
      'returns a BigInt',
      () => 1n,
      'FAILED',
      { error: { code: 'result_invalid' }, next: { final: 'not_retryable' } },
    ],
    [
      'returns more than fits',
      () => 'x'.repeat(600_000),
      'FAILED',
      { error: { code: 'result_invalid' }, next: { final: 'not_retryable' } },
    ],
    ['returns a broken thenable', () => brokenThenable, 'FAILED', { error: { message: 'then' } }],
    ['returns undefined', () => undefined, 'COMPLETED', {}],
    ['returns null', () => null, 'COMPLETED', { result: null }],
  ])('of a handler that %s has a stated outcome', async (_what, handler, kind, data) => {
    const worker = await rig.worker({ types: { [TYPE]: handler } });
    const id = await rig.enqueue();
    expect((await rig.event(id, kind as 'FAILED')).data).toMatchObject(data);
    await rig.whenAllAcked();
    expect(worker.stats().running).toBe(0);
  });
});

describe('an attempt that the log does not let begin', () => {
  let patient: WorkerRig;
  beforeAll(async () => {
    patient = await openWorkerRig(import.meta.url, { ackWaitMs: 600_000 });
  });
  afterAll(() => patient.stop());

  test.each([
    ['claimed', ['INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'COMPLETED']],
    ['processing', ['INGESTED', 'QUEUED', 'CLAIMED', 'RETRY_CLAIMED']],
  ])('comes again soon, not after its ack-wait: %s', async (event, kinds) => {
    const { nc } = patient.world;
    const worker = await patient.worker({
      nats: failingOnce(nc, `.${event}`),
      types: { [TYPE]: () => 'done' },
    });
    const id = await patient.enqueue();
    await eventually(() => expect(patient.kinds(id)).toEqual(kinds), { timeoutMs: 60_000 });
    expect(worker.stats()).toMatchObject({ handedBack: 1 });
    await patient.whenAllAcked();
    await patient.stopWorkers();
  });
});

describe('a typed task', () => {
  const typed = defineTask({
    type: TYPE,
    payload: z.object({ frames: z.int() }),
    result: z.object({ half: z.number() }),
  });

  test('whose payload does not fit never reaches its handler and is not retried', async () => {
    let ran = 0;
    await rig.worker({
      types: {
        [TYPE]: typed.handle(() => {
          ran += 1;
          return { half: 1 };
        }),
      },
    });
    const id = await rig.enqueue({ payload: { frames: 'many' } });
    const { data } = await rig.event(id, 'FAILED');
    expect(data).toMatchObject({ error: { code: 'payload_invalid' }, next: { final: 'not_retryable' } });
    expect(data.error.message).toContain('payload.frames');
    expect(ran).toBe(0);
  });

  test('whose result does not fit fails and is not retried', async () => {
    await rig.worker({
      types: { [TYPE]: typed.handle(({ payload }) => ({ half: `${payload.frames}` }) as never) },
    });
    const id = await rig.enqueue({ payload: { frames: 4 } });
    expect((await rig.event(id, 'FAILED')).data).toMatchObject({
      error: { code: 'result_invalid', message: expect.stringContaining('result.half') },
      next: { final: 'not_retryable' },
    });
  });

  test('that fits completes', async () => {
    await rig.worker({ types: { [TYPE]: typed.handle(({ payload }) => ({ half: payload.frames / 2 })) } });
    const id = await rig.enqueue({ payload: { frames: 4 } });
    expect((await rig.event(id, 'COMPLETED')).data.result).toEqual({ half: 2 });
  });
});

describe('an attempt past its time', () => {
  test('is told by its signal, and is FAILED when it obeys', async () => {
    const reason = gate<unknown>();
    await rig.worker({
      types: {
        [TYPE]: async (context) => {
          await untilAborted(context).catch((error: unknown) => {
            reason.open(error);
            throw error;
          });
        },
      },
    });
    const id = await rig.enqueue({ policy: { timeoutMs: 50 } });
    expect((await rig.event(id, 'FAILED')).data).toMatchObject({
      error: { name: 'TimeoutError', code: 'attempt_timeout' },
      next: { retryInMs: expect.any(Number) },
    });
    expect(await reason.opened).toBeInstanceOf(AttemptAborted);
    expect(await reason.opened).toMatchObject({ name: 'TimeoutError', reason: 'timeout' });
  });

  test('is given up after the grace when its handler ignores the signal; its late result is ignored', async () => {
    const late = gate<string>();
    const worker = await rig.worker({
      concurrency: 1,
      abortGraceMs: 50,
      types: { [TYPE]: ({ payload }) => (payload === 'hang' ? late.opened : 'ran') },
    });
    const id = await rig.enqueue({ payload: 'hang', policy: { timeoutMs: 50 } });
    await rig.event(id, 'FAILED');
    // The slot is free again although the handler still runs.
    const next = await rig.enqueue({ payload: 'next' });
    await rig.event(next, 'COMPLETED');
    late.open('too late');
    await rig.whenAllAcked();
    expect(rig.kinds(id)).toEqual(['INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'FAILED']);
    expect(worker.stats()).toMatchObject({ completed: 1, failed: 1 });
  });

  test('ends for good when the deadline comes before the timeout', async () => {
    await rig.worker({ types: { [TYPE]: untilAborted } });
    const id = await rig.enqueue({ deadlineAt: Date.now() + 5_000 });
    expect((await rig.event(id, 'FAILED')).data.next).toEqual({ final: 'deadline' });
  });

  test('is not made when the deadline has passed before the claim', async () => {
    const id = await rig.enqueue({ deadlineAt: Date.now() + 1 });
    await eventually(
      () => Date.now() > (rig.world.stateOf(id)?.facts.deadlineAt ?? Number.POSITIVE_INFINITY),
    );
    await rig.worker({ types: { [TYPE]: () => 'ran' } });
    expect((await rig.event(id, 'DEAD_LETTER')).data.reason).toBe('deadline');
    expect(rig.kinds(id)).toEqual(['INGESTED', 'QUEUED', 'DEAD_LETTER']);
    await rig.whenAllAcked();
  });
});

describe('a running attempt that is cancelled', () => {
  const requestCancel = (id: string) =>
    rig.world.execute(id, () => ({
      kind: 'request_cancel',
      eventId: crypto.randomUUID(),
      at: Date.now(),
      actor: { kind: 'user', id: 'ada' },
    }));

  test('is CANCELLED when its handler obeys the signal', async () => {
    const started = gate();
    const worker = await rig.worker({
      types: {
        [TYPE]: (context) => {
          started.open();
          return untilAborted(context);
        },
      },
    });
    const id = await rig.enqueue();
    await started.opened;
    await requestCancel(id);
    await rig.event(id, 'CANCELLED');
    expect(rig.kinds(id).slice(-2)).toEqual(['CANCEL_REQUESTED', 'CANCELLED']);
    await rig.whenAllAcked();
    expect(worker.stats().cancelled).toBe(1);
  });

  test('is CANCELLED after the grace when its handler ignores the signal', async () => {
    const started = gate();
    await rig.worker({
      abortGraceMs: 50,
      types: {
        [TYPE]: endless(started),
      },
    });
    const id = await rig.enqueue();
    await started.opened;
    await requestCancel(id);
    await rig.event(id, 'CANCELLED');
    await rig.whenAllAcked();
  });

  test('is COMPLETED when its handler finishes all the same', async () => {
    const started = gate();
    await rig.worker({
      types: {
        [TYPE]: async (context) => {
          started.open();
          await untilAborted(context).catch(() => undefined);
          return 'done anyway';
        },
      },
    });
    const id = await rig.enqueue();
    await started.opened;
    await requestCancel(id);
    expect((await rig.event(id, 'COMPLETED')).data.result).toBe('done anyway');
    await rig.whenAllAcked();
  });
});
