import { once } from 'node:events';
import { createServer, connect as dial, type Socket } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from './eventually.ts';
import { startTcpProxy } from './tcp-proxy.ts';

/** An echo server behind a proxy, and clients that remember what they heard. */
async function setup() {
  const seenByServer: string[] = [];
  const echo = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('data', (chunk) => {
      seenByServer.push(chunk.toString());
      socket.write(chunk);
    });
  });
  echo.listen(0, '127.0.0.1');
  await once(echo, 'listening');
  const address = echo.address();
  if (typeof address !== 'object' || address === null) throw new Error('no address');
  const proxy = await startTcpProxy({ port: address.port });
  const sockets: Socket[] = [];
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy();
    await proxy.close();
    echo.close();
  });
  const client = async () => {
    const socket = dial(proxy.port, '127.0.0.1');
    sockets.push(socket);
    const heard: string[] = [];
    const errors: string[] = [];
    socket.on('data', (chunk) => heard.push(chunk.toString()));
    socket.on('error', (error: NodeJS.ErrnoException) => errors.push(error.code ?? error.message));
    await once(socket, 'connect');
    return { socket, heard: () => heard.join(''), errors };
  };
  return { proxy, client, seenByServer: () => seenByServer.join('') };
}

test('pass forwards bytes in order in both directions', async () => {
  const { client } = await setup();
  const { socket, heard } = await client();
  socket.write('one ');
  socket.write('two');
  await eventually(() => expect(heard()).toBe('one two'));
});

test('delay holds every byte back for at least the delay, in order', async () => {
  const { proxy, client } = await setup();
  const { socket, heard } = await client();
  proxy.pass({ delayMs: 60 });
  const sentAt = performance.now();
  socket.write('a');
  socket.write('b');
  await eventually(() => expect(heard()).toBe('ab'));
  // Once on the way there, once on the way back; timers may fire a millisecond early.
  expect(performance.now() - sentAt).toBeGreaterThan(115);
});

test('cut resets open connections and new ones, and pass lets new ones through again', async () => {
  const { proxy, client } = await setup();
  const first = await client();
  first.socket.write('x');
  await eventually(() => expect(first.heard()).toBe('x'));
  proxy.cut();
  await eventually(() => expect(first.errors).toEqual(['ECONNRESET']));
  const second = await client().catch((error: NodeJS.ErrnoException) => ({ errors: [error.code] }));
  await eventually(() => expect(second.errors).toEqual(['ECONNRESET']));
  expect(proxy.connections()).toBe(0);
  proxy.pass();
  const third = await client();
  third.socket.write('y');
  await eventually(() => expect(third.heard()).toBe('y'));
});

test('blackhole swallows bytes without closing, and the deaf connection is reset afterwards', async () => {
  const { proxy, client, seenByServer } = await setup();
  const { socket, heard, errors } = await client();
  socket.write('before');
  await eventually(() => expect(heard()).toBe('before'));
  proxy.blackhole();
  socket.write('lost');
  await eventually(() => expect(proxy.swallowedBytes()).toBe(4));
  const other = await client();
  expect(other.socket.readyState).toBe('open');
  await eventually(() => expect(proxy.connections()).toBe(2));
  expect(errors).toEqual([]);
  proxy.pass();
  await eventually(() => expect(errors).toEqual(['ECONNRESET']));
  expect(seenByServer()).toBe('before');
});

test('mute swallows what the client sends, and lets through what is on its way to it', async () => {
  const { proxy, client, seenByServer } = await setup();
  const { socket, heard } = await client();
  proxy.pass({ delayMs: 200 });
  socket.write('before');
  await eventually(() => expect(seenByServer()).toBe('before'), { intervalMs: 1 });
  proxy.mute();
  socket.write('lost');
  await eventually(() => expect(proxy.swallowedBytes()).toBe(4));
  await eventually(() => expect(heard()).toBe('before'));
  expect(seenByServer()).toBe('before');
});
