import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { cli } from '../../test/support/command-line.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const event = (seq: number, kind: string, data: object = {}) => ({
  seq,
  kind,
  attempt: 1,
  storedAt: new Date(Date.parse('2026-01-01T00:00:00Z') + seq).toISOString(),
  actor: { kind: 'worker', id: 'w1' },
  data,
});
const message = (of: { seq: number; kind: string }): string =>
  `id: ${of.seq}\nevent: ${of.kind}\ndata: ${JSON.stringify(of)}\n\n`;

type Answering = (response: ServerResponse, request: IncomingMessage) => void;
const stream =
  (text: string, close: 'end' | 'destroy' = 'end'): Answering =>
  (response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.write(text, () => response[close]());
  };
const refuse =
  (status: number, code: string, retryable: boolean): Answering =>
  (response) => {
    response.writeHead(status, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: { code, message: 'no', fix: 'Wait.', retryable } }));
  };

/** An API that has a task with a history, and whose feed gives these answers, one a connection. */
async function setup({
  status = 'PROCESSING',
  histories,
  feed,
}: {
  status?: string;
  histories: readonly (readonly object[])[];
  feed: readonly Answering[];
}) {
  const asked: { path: string; after: string | undefined }[] = [];
  let reads = 0;
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    response.setHeader('connection', 'close');
    if (path.startsWith('/v1/events')) {
      asked.push({ path, after: request.headers['last-event-id'] as string | undefined });
      const answer = feed[asked.length - 1];
      if (answer === undefined) request.socket.destroy();
      else answer(response, request);
      return;
    }
    const body = path.includes('/events?')
      ? { position: 1, events: histories[Math.min(reads++, histories.length - 1)], nextCursor: null }
      : { position: 1, task: { id: ID, status } };
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  });
  const listen = async (port = 0): Promise<number> => {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
    return (server.address() as AddressInfo).port;
  };
  const port = await listen();
  onTestFinished(() => void server.close());
  const pauses: number[] = [];
  const watch = async (pause: (ms: number) => Promise<void> = async () => {}, options = '') => {
    const { exit, out, err } = await cli(
      `task watch ${ID} --json --url http://127.0.0.1:${port}${options}`,
      [],
      {
        fetch,
        pause: async (ms) => {
          pauses.push(ms);
          await pause(ms);
        },
      },
    );
    const seqs =
      out.trim() === ''
        ? []
        : out
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line).seq);
    return { exit, err, seqs };
  };
  return { asked, pauses, server, watch, listenAgain: () => listen(port) };
}

const begun = [event(10, 'INGESTED'), event(20, 'QUEUED')];

test('task watch prints the history, then the feed from its last event, until the end', async () => {
  const { asked, watch } = await setup({
    histories: [begun],
    feed: [
      stream(
        `: following\nid: 20\n\n${message(event(30, 'CLAIMED'))}${message(event(40, 'COMPLETED'))}${message(event(50, 'REPLAYED'))}`,
      ),
    ],
  });
  expect(await watch(undefined, ' --tenant acme')).toMatchObject({
    exit: 0,
    seqs: [10, 20, 30, 40],
    err: '',
  });
  expect(asked).toEqual([{ path: `/v1/events?task=${ID}&tenant=acme`, after: '20' }]);
});

test('task watch goes on after the last event when the API restarts, and prints each once', async () => {
  const cut = message(event(40, 'PROCESSING')).slice(0, 25);
  const { asked, pauses, server, watch, listenAgain } = await setup({
    histories: [begun],
    feed: [
      stream(`${message(event(30, 'CLAIMED'))}${cut}`, 'destroy'),
      stream(
        `${message(event(40, 'PROCESSING'))}: still here\nid: 90\n\nevent: end\ndata: {"reason":"shutting_down"}\n\n`,
      ),
      stream(message(event(95, 'DEAD_LETTER', { reason: 'retries' }))),
    ],
  });
  let tries = 0;
  const watched = await watch(async () => {
    tries += 1;
    // Away for two tries, then back at the same address.
    if (tries === 1) await new Promise((resolve) => server.close(resolve));
    if (tries === 3) await listenAgain();
  });
  expect(watched).toMatchObject({ exit: 1, seqs: [10, 20, 30, 40, 95] });
  expect(asked.map(({ after }) => after)).toEqual(['20', '30', '90']);
  expect(pauses).toEqual([250, 500, 1_000, 250]);
});

test('task watch fills a gap of the feed from the history', async () => {
  const { watch } = await setup({
    histories: [begun, [...begun, event(30, 'CLAIMED')]],
    feed: [stream(`event: gap\ndata: {"from":21,"to":35}\n\n${message(event(40, 'CANCELLED'))}`)],
  });
  expect(await watch()).toMatchObject({ exit: 1, seqs: [10, 20, 30, 40] });
});

test('task watch of what has ended opens no feed, though the end came between the two reads', async () => {
  const ended = [...begun, event(40, 'DEAD_LETTER', { reason: 'retries' }), event(41, 'DISCARDED')];
  const { asked, watch } = await setup({ histories: [ended], feed: [] });
  expect(await watch()).toMatchObject({ exit: 1, seqs: [10, 20, 40, 41] });
  expect(asked).toEqual([]);
});

test('task watch waits for a feed that is busy, and ends with 3 when it is refused for good', async () => {
  const { asked, watch } = await setup({
    histories: [begun],
    feed: [refuse(429, 'rate_limited', true), refuse(401, 'key_invalid', false)],
  });
  const { exit, err } = await watch();
  expect(exit).toBe(3);
  expect(err).toContain('key_invalid');
  expect(asked).toHaveLength(2);
});

test('task watch ends with 4 when the API stays away for a minute', async () => {
  const { pauses, watch } = await setup({ histories: [begun], feed: [] });
  expect(await watch()).toMatchObject({ exit: 4, seqs: [10, 20] });
  expect(pauses.reduce((sum, ms) => sum + ms, 0)).toBe(61_750);
});
