import type { NatsConnection } from '@nats-io/transport-node';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { silentLogger } from '../observe/log.ts';
import { encodeMessage, headerText, Publisher } from './publisher.ts';

const CONFIG = { appendInFlight: 2, appendTimeoutMs: 4_000, appendRetries: 2 };
const stored = (seq: number) => JSON.stringify({ stream: 'S', seq });
const refused = (code: number, description: string) =>
  JSON.stringify({ error: { err_code: code, description } });

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

/** A connection whose answers the test gives. */
function setup(config: Partial<typeof CONFIG> = {}) {
  const sent: { subject: string; body: string; headers: string; reply: string }[] = [];
  let receive: (error: null, message: unknown) => void = () => {};
  let pushStatus: (status: { type: string }) => void = () => {};
  const statuses: { type: string }[] = [];
  const nc = {
    isClosed: () => false,
    subscribe: (_subject: string, options: { callback: typeof receive }) => {
      receive = options.callback;
      return { unsubscribe() {} };
    },
    publish: (
      subject: string,
      body: Uint8Array,
      options: { reply: string; headers?: { encode(): Uint8Array } },
    ) => {
      sent.push({
        subject,
        body: Buffer.from(body).toString(),
        headers: Buffer.from(options.headers?.encode() ?? []).toString(),
        reply: options.reply,
      });
    },
    async *status() {
      for (;;) {
        const next = statuses.shift();
        if (next !== undefined) yield next;
        else
          await new Promise<void>((resolve) => {
            pushStatus = (status) => {
              statuses.push(status);
              resolve();
            };
          });
      }
    },
  };
  const publisher = new Publisher(nc as unknown as NatsConnection, { ...CONFIG, ...config }, silentLogger);
  return {
    publisher,
    sent,
    answer: (n: number, text: string) =>
      receive(null, { subject: sent[n]?.reply ?? '', data: Buffer.from(text) }),
    status: async (type: string) => {
      pushStatus({ type });
      await vi.advanceTimersByTimeAsync(0);
    },
    send: (subject: string) => publisher.send(encodeMessage(subject, headerText({ A: 'b' }), 'ü')),
  };
}

describe('the publisher', () => {
  test('sends header block and body, and answers where the message is stored', async () => {
    const { send, sent, answer } = setup();
    const outcome = send('a');
    expect(sent[0]).toMatchObject({ subject: 'a', body: 'ü', headers: 'NATS/1.0\r\nA: b\r\n\r\n' });
    answer(0, stored(7));
    expect(await outcome).toEqual({ status: 'stored', stream: 'S', seq: 7 });
  });

  test('gives a message up instead of sending it again once its sender no longer may', async () => {
    const { publisher, sent, status } = setup();
    let may = true;
    const outcome = publisher.send(encodeMessage('a', headerText({ A: 'b' }), 'x'), () => may);
    const told = expect(outcome).rejects.toMatchObject({
      code: 'log_unavailable',
      details: { doubtful: true },
    });
    expect(sent).toHaveLength(1);
    await status('disconnect');
    may = false;
    await status('reconnect');
    await told;
    expect(sent).toHaveLength(1);
    expect(publisher.stats().inFlight).toBe(0);
  });

  test('has no more in flight than its window, and serves those who wait in order', async () => {
    const { send, sent, answer, publisher } = setup();
    const all = ['a', 'b', 'c', 'd'].map(send);
    expect(sent.map(({ subject }) => subject)).toEqual(['a', 'b']);
    expect(publisher.stats()).toEqual({ inFlight: 2, waiting: 2 });
    answer(1, stored(1));
    await all[1];
    expect(sent.map(({ subject }) => subject)).toEqual(['a', 'b', 'c']);
    answer(0, refused(10_071, 'wrong last sequence: 1'));
    await all[0];
    expect(sent.map(({ subject }) => subject)).toEqual(['a', 'b', 'c', 'd']);
    answer(2, stored(2));
    answer(3, stored(3));
    await Promise.all(all);
    expect(publisher.stats()).toEqual({ inFlight: 0, waiting: 0 });
  });

  test.each([
    { why: 'nobody listens', refusal: '' },
    { why: 'another write to the key is in flight', refusal: refused(10_164, 'wrong last sequence') },
  ])('tries again soon when $why, without doubt', async ({ refusal }) => {
    const { send, sent, answer } = setup();
    const outcome = send('a');
    answer(0, refusal);
    await vi.advanceTimersByTimeAsync(1);
    answer(1, refusal);
    await vi.advanceTimersByTimeAsync(2);
    expect(sent.length).toBe(3);
    answer(2, refused(10_071, 'wrong last sequence: 5'));
    expect(await outcome).toEqual({
      status: 'refused',
      code: 10_071,
      description: 'wrong last sequence: 5',
      doubtful: false,
    });
  });

  test('tries again after a silence, and calls a refusal after that doubtful', async () => {
    const { send, sent, answer } = setup();
    const outcome = send('a');
    await vi.advanceTimersByTimeAsync(1_100);
    expect(sent.length).toBe(2);
    answer(1, refused(10_071, 'wrong last sequence: 5'));
    expect(await outcome).toMatchObject({ status: 'refused', doubtful: true });
  });

  test('takes the answer to an earlier try', async () => {
    const { send, answer } = setup();
    const outcome = send('a');
    await vi.advanceTimersByTimeAsync(1_100);
    answer(0, stored(3));
    answer(1, refused(10_071, 'wrong last sequence: 3'));
    expect(await outcome).toMatchObject({ status: 'stored', seq: 3 });
  });

  test('gives up after its retries, says whether there is doubt, and makes room', async () => {
    const { send, sent, publisher, answer } = setup({ appendInFlight: 1 });
    const outcome = send('a').catch((error: unknown) => error);
    const next = send('b');
    await vi.advanceTimersByTimeAsync(1_000 + 2_000 + 4_000 + 500);
    expect(await outcome).toMatchObject({ code: 'log_unavailable', details: { doubtful: true } });
    expect(sent.filter(({ subject }) => subject === 'a').length).toBe(1 + CONFIG.appendRetries);
    expect(publisher.stats().inFlight).toBe(1);
    answer(sent.length - 1, stored(9));
    expect(await next).toMatchObject({ seq: 9 });
  });

  test('gives up without doubt when it never got through to a stream', async () => {
    const { send, sent, answer } = setup();
    const outcome = send('a').catch((error: unknown) => error);
    for (let n = 0; n < 100; n += 1) {
      answer(sent.length - 1, '');
      await vi.advanceTimersByTimeAsync(100);
    }
    expect(await outcome).toMatchObject({ code: 'log_unavailable', details: { doubtful: false } });
  });

  test('says that nothing is stored while no try is confirmed, and until one is', async () => {
    const { send, sent, answer, publisher, status } = setup({ appendRetries: 20 });
    const outcome = send('a');
    await vi.advanceTimersByTimeAsync(3_000);
    expect(publisher.trouble()).toBeUndefined();
    await vi.advanceTimersByTimeAsync(6_000);
    expect(publisher.trouble()).toContain('no answer in time');
    const other = send('b');
    answer(sent.length - 1, refused(10_071, 'wrong last sequence: 1'));
    await other;
    expect(publisher.trouble()).toBeDefined();
    answer(sent.length - 2, stored(1));
    await outcome;
    expect(publisher.trouble()).toBeUndefined();

    const again = send('c');
    await vi.advanceTimersByTimeAsync(9_000);
    expect(publisher.trouble()).toBeDefined();
    await status('disconnect');
    await status('reconnect');
    expect(publisher.trouble()).toBeUndefined();
    answer(sent.length - 1, stored(2));
    await again;
  });

  test('sends nothing while disconnected, and everything again afterwards', async () => {
    const { send, sent, answer, status } = setup();
    const before = send('a');
    await vi.advanceTimersByTimeAsync(0);
    await status('disconnect');
    const during = send('b');
    await vi.advanceTimersByTimeAsync(3_000);
    expect(sent.map(({ subject }) => subject)).toEqual(['a']);
    await status('reconnect');
    expect(sent.map(({ subject }) => subject)).toEqual(['a', 'a', 'b']);
    answer(1, refused(10_071, 'wrong last sequence: 1'));
    answer(2, refused(10_071, 'wrong last sequence: 1'));
    expect(await before).toMatchObject({ doubtful: true });
    expect(await during).toMatchObject({ doubtful: false });
  });

  test('fails what is in flight and what comes later once it is closed', async () => {
    const { send, publisher } = setup();
    const outcomes = ['a', 'b', 'c'].map((subject) => send(subject).catch((error: unknown) => error));
    publisher.close();
    for (const outcome of [...outcomes, send('d').catch((error: unknown) => error)]) {
      expect(await outcome).toMatchObject({ code: 'log_unavailable' });
    }
  });

  test('throws log_refused from publish when the stream will not have the message', async () => {
    const { publisher, answer } = setup();
    const outcome = publisher.publish('a', 'b', { X: 'y' });
    answer(0, refused(10_189, 'message schedule invalid'));
    await expect(outcome).rejects.toMatchObject({
      code: 'log_refused',
      details: { subject: 'a', code: 10_189 },
    });
  });
});
