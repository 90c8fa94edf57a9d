import { afterAll, expect, test } from 'vitest';
import { call, startApi } from '../support/api.ts';
import { eventually } from '../support/eventually.ts';
import { testNatsUrl } from '../support/servers.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

const proxy = await startTcpProxy({ port: Number(new URL(testNatsUrl()).port) });
const api = await startApi(import.meta.url, {
  natsUrl: `nats://127.0.0.1:${proxy.port}`,
  config: { httpSubmitTimeoutMs: 300 },
});
afterAll(async () => {
  proxy.pass();
  await api.stop();
  await proxy.close();
});

const submit = (id: string) =>
  call(api.http, 'POST', '/v1/tasks', { key: api.keys.acme, body: { type: 'mail', payload: 1, id } });
/** Again and again: on a busy machine the log may take longer than a submission waits for it. */
const submitted = (id: string) =>
  eventually(async () => {
    const answer = await submit(id);
    return answer.status < 300 ? answer : false;
  });

test.each(['cut', 'blackhole'] as const)(
  'while NATS is away (%s) a submission is answered 503 in time, and its retry makes exactly one task',
  async (fault) => {
    const id = `during ${fault}`;
    await submitted(`before ${fault}`);
    proxy[fault]();
    const { status, headers, body } = await submit(id);
    expect(status).toBe(503);
    expect(headers['retry-after']).toBe('2');
    expect(body.error).toMatchObject({ code: 'log_unavailable', retryable: true });
    expect((await call(api.http, 'GET', '/healthz')).status).toBe(200);
    expect((await call(api.http, 'GET', '/readyz')).status).toBe(503);

    proxy.pass();
    const retried = await submitted(id);
    await eventually(async () => {
      const events = await api.log.readTask('acme', retried.body.id);
      expect(events.map(({ event }) => event.kind)).toEqual(['INGESTED']);
    });
    expect((await submitted(id)).body).toEqual({ ...retried.body, replayed: true });
  },
);
