import { once } from 'node:events';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { call, startApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';

const BUFFER_BYTES = 65_536;
const api = await startApi(import.meta.url, { config: { httpFeedBufferBytes: BUFFER_BYTES } });
beforeAll(() => api.http.start());
afterAll(() => api.stop());

const { acme, zeta } = api.keys;
const admin = await api.keyOf('acme', ['admin']);
const submit = async (body: object, key = acme): Promise<{ id: string; seq: number }> =>
  (await call(api.http, 'POST', '/v1/tasks', { key, body: { payload: 1, type: 'quick', ...body } })).body;
const cancel = (id: string) => call(api.http, 'POST', `/v1/tasks/${id}/cancel`, { key: admin, body: {} });

interface Message {
  readonly id: number;
  readonly event: string;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into events of every kind
  readonly data: any; // oxlint-disable-line typescript/no-explicit-any -- as above
}

/** Messages of an open feed, as they come. */
async function follow(path: string, headers: Record<string, string> = {}, key = acme) {
  // A client without a pool: one that opens connections ahead holds up a stop by what it has never used.
  const request = httpGet(`${api.http.url}${path}`, {
    agent: false,
    headers: { authorization: `Bearer ${key}`, ...headers },
  });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  let text = '';
  response.on('data', (chunk) => {
    text += String(chunk);
  });
  let error: Error | undefined;
  response.on('error', (thrown) => {
    error = thrown;
  });
  const ended = new Promise<Error | undefined>((resolve) => response.once('close', () => resolve(error)));
  const messages = (): Message[] =>
    text
      .split('\n\n')
      .slice(0, -1)
      .filter((message) => !message.startsWith(':'))
      .map((message) => {
        const field = (name: string) => new RegExp(`^${name}: (.*)$`, 'm').exec(message)?.[1] ?? '';
        return { id: Number(field('id')), event: field('event'), data: JSON.parse(field('data')) };
      });
  return {
    response,
    messages,
    ids: () => messages().map(({ id }) => id),
    kinds: () => messages().map(({ event }) => event),
    opening: () => text.slice(0, text.indexOf('\n\n')),
    ended,
    stop: () => request.destroy(),
  };
}

describe('the feed of events', () => {
  test("brings what is stored from now on, filtered, and never what is another tenant's", async () => {
    await submit({});
    const mine = await follow('/v1/events?type=quick&kind=CANCELLED,INGESTED');
    const theirs = await follow('/v1/events', {}, zeta);
    expect(mine.response.headers['content-type']).toContain('text/event-stream');
    const task = await submit({ payload: { n: 1 } });
    await submit({ type: 'held' });
    const own = await submit({}, zeta);
    await cancel(task.id);
    await eventually(() => expect(mine.kinds()).toEqual(['INGESTED', 'CANCELLED']));
    expect(mine.messages()).toMatchObject([
      { id: task.seq, data: { seq: task.seq, taskId: task.id, tenant: 'acme', data: { payload: { n: 1 } } } },
      { data: { kind: 'CANCELLED', taskId: task.id } },
    ]);
    await eventually(() => expect(theirs.ids()).toEqual([own.seq]));
    mine.stop();
    theirs.stop();
  });

  test('goes on after the last event that a client has seen, while others follow live and events go on coming', async () => {
    const live = await follow('/v1/events');
    const seqs: number[] = [];
    const more = async (count: number) => {
      for (let n = 0; n < count; n += 1) seqs.push((await submit({})).seq);
    };
    await more(20);
    const submitting = more(40);
    const resumed = await follow('/v1/events', { 'last-event-id': String(seqs[4]) });
    await submitting;
    await eventually(() => expect(resumed.ids()).toEqual(seqs.slice(5)));
    await more(3);
    await eventually(() => expect(resumed.ids()).toEqual(seqs.slice(5)));
    await eventually(() => expect(live.ids()).toEqual(seqs));
    live.stop();
    resumed.stop();
  });

  test('says first where it begins, so that a client which heard nothing yet can come back', async () => {
    const { seq } = await submit({});
    const first = await follow('/v1/events');
    await eventually(() => expect(first.opening()).toBe(`: following\nid: ${seq}`));
    first.stop();
    const next = await submit({});
    const again = await follow('/v1/events', { 'last-event-id': String(seq) });
    await eventually(() => expect(again.ids()).toEqual([next.seq]));
    again.stop();
  });

  test('drops a client that takes nothing with a reason, when too much waits for it; the others hear on', async () => {
    const slow = await follow('/v1/events?type=large');
    const other = await follow('/v1/events?type=small');
    // No more is taken from the socket: what the kernel holds fills up, then the buffer of the process.
    slow.response.pause();
    const payload = 'x'.repeat(400_000);
    const seqs: number[] = [];
    const others: number[] = [];
    for (let n = 0; n < 40; n += 1) {
      seqs.push((await submit({ type: 'large', payload })).seq);
      others.push((await submit({ type: 'small' })).seq);
    }
    await eventually(() => expect(other.ids()).toEqual(others));
    slow.response.resume();
    expect(await slow.ended).toBeUndefined();
    const last = slow.messages().at(-1);
    expect(last).toMatchObject({ event: 'end', data: { reason: 'slow' } });
    const heard = slow.ids().slice(0, -1);
    expect(heard).toEqual(seqs.slice(0, heard.length));
    expect(heard.length).toBeLessThan(seqs.length);
    const back = await follow('/v1/events?type=large', { 'last-event-id': String(heard.at(-1) ?? 0) });
    await eventually(() => expect(back.ids()).toEqual(seqs.slice(heard.length)));
    other.stop();
    back.stop();
  });

  test('is refused for a foreign tenant and for what is no sequence', async () => {
    const get = (url: string, headers = {}) => call(api.http, 'GET', url, { key: acme, headers });
    expect((await get('/v1/events?tenant=zeta')).body.error.code).toBe('tenant_forbidden');
    expect((await get('/v1/events?kind=NOTHING')).body.error.field).toBe('kind');
    expect((await get('/v1/events', { 'last-event-id': 'x' })).body.error.field).toBe('last-event-id');
  });

  test('ends with a reason, whole, when the API stops, and does not hold it up', async () => {
    const feed = await follow('/v1/events');
    const { seq } = await submit({});
    await eventually(() => expect(feed.ids()).toEqual([seq]));
    await api.http.stop();
    expect(await feed.ended).toBeUndefined();
    expect(feed.messages().at(-1)).toMatchObject({ event: 'end', data: { reason: 'shutting_down' } });
  });
});
