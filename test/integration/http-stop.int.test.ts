import { Agent, request } from 'node:http';
import { afterAll, expect, test } from 'vitest';
import { absentQuery, startApi } from '../support/api.ts';

/** A read that answers when the test says so. */
let letGo = (): void => {};
let asked = (): void => {};
const beingAsked = new Promise<void>((resolve) => {
  asked = resolve;
});
const api = await startApi(import.meta.url, {
  queryOn: () => ({
    ...absentQuery,
    queues: () =>
      new Promise((resolve) => {
        letGo = () => resolve({ position: 7, value: [] });
        asked();
      }),
  }),
});
afterAll(() => api.stop());

/** Sends a request on a connection that the client keeps alive. */
function get(path: string, agent: Agent) {
  return new Promise<{ status: number; connection: string | undefined }>((resolve, reject) => {
    const headers = { authorization: `Bearer ${api.keys.acme}` };
    const sending = request(`${api.http.url}${path}`, { agent, headers }, (response) => {
      response.resume();
      const { statusCode: status = 0 } = response;
      response.on('end', () => resolve({ status, connection: response.headers.connection }));
    });
    sending.on('error', reject);
    sending.end();
  });
}

test('stopping lets a request in flight finish, and is not held up by connections that are kept alive', async () => {
  await api.http.start();
  const agent = new Agent({ keepAlive: true });
  expect(await get('/healthz', agent)).toMatchObject({ status: 200, connection: 'keep-alive' });
  const slow = get('/v1/queues', agent);
  await beingAsked;
  const stopped = api.http.stop();
  const late = await api.http.app.inject({ url: '/healthz' });
  expect(late.statusCode).toBe(503);
  expect(late.json().error.code).toBe('shutting_down');
  expect(late.headers['retry-after']).toBe('2');
  letGo();
  expect(await slow).toEqual({ status: 200, connection: 'close' });
  await stopped;
  await api.http.stop();
  await expect(get('/healthz', agent)).rejects.toThrow(/ECONNREFUSED|ECONNRESET/);
  agent.destroy();
});
