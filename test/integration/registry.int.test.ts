import { jetstreamManager } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { connect, type NatsConnection } from '@nats-io/transport-node';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ensureStreams } from '../../src/log/streams.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { Patience } from '../../src/platform/patience.ts';
import type { PauseScope } from '../../src/registry/controls.ts';
import { openRegistry, type Registry } from '../../src/registry/registry.ts';
import { eventually } from '../support/eventually.ts';
import { recordingLogger } from '../support/read-models.ts';
import { connectTestNats, testNamespace, testNatsUrl } from '../support/servers.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';

const prefix = testNamespace(import.meta.url);
const names = namesOf(prefix);
const nc = await connectTestNats();
await ensureStreams({ nc, names, config: loadConfig({}), logger: silentLogger });
const opened: Registry[] = [];
const open = async (logger = silentLogger): Promise<Registry> => {
  const registry = openRegistry({ nc, names, logger });
  opened.push(registry);
  await registry.start();
  return registry;
};
afterEach(async () => {
  for (const registry of opened.splice(0)) await registry.stop();
});
afterAll(() => nc.close());
const createdAt = '2026-11-29T00:00:00.000Z';

describe('a setting', () => {
  test('is known at once where it was put, soon in other processes, and to those that start later', async () => {
    const [writer, reader] = [await open(), await open()];
    await writer.types.put({ type: 'mail', policy: { maxRetries: 1 } });
    expect(writer.types.get('mail')).toEqual({ type: 'mail', policy: { maxRetries: 1 } });
    await eventually(() =>
      expect(reader.types.get('mail')).toEqual({ type: 'mail', policy: { maxRetries: 1 } }),
    );
    expect((await open()).types.get('mail')).toEqual({ type: 'mail', policy: { maxRetries: 1 } });
  });

  test('that is put again replaces the old one, whatever order the news arrives in', async () => {
    const registry = await open();
    for (let n = 1; n <= 20; n += 1) await registry.types.put({ type: 'often', maxBacklog: n });
    await nc.flush();
    expect(registry.types.get('often')).toEqual({ type: 'often', maxBacklog: 20 });
    expect((await open()).types.get('often')?.maxBacklog).toBe(20);
  });

  test('that does not validate is not stored', async () => {
    const registry = await open();
    await expect(registry.tenants.put({ name: 'No.Good', createdAt })).rejects.toThrow();
    await expect(registry.types.put({ type: 'a', maxBacklog: 0 })).rejects.toThrow();
    expect(registry.tenants.list()).toEqual([]);
  });

  test('that cannot be read is reported and does not hide the others', async () => {
    const bucket = await new Kvm(nc).open(names.buckets.tenants);
    await bucket.put('broken', '{"name":7}');
    await bucket.put('worse', 'not JSON');
    const logger = recordingLogger();
    const registry = await open(logger);
    await registry.tenants.put({ name: 'fine', createdAt });
    expect(registry.tenants.list().map(({ name }) => name)).toEqual(['fine']);
    const reported = logger.lines.flatMap(({ fields }) => ('key' in fields ? [fields['key']] : []));
    expect(new Set(reported)).toEqual(new Set(['broken', 'worse']));
    await bucket.delete('fine');
    await eventually(() => expect(registry.tenants.get('fine')).toBeUndefined());
  });
});

describe("an operator's key of the configuration", () => {
  const key = `tl_0123456789abcdef_${'k'.repeat(43)}`;
  const operator = { tenant: '*', scopes: ['admin'], name: 'operator' } as const;

  test('works once it is stored, and is stored once, by however many processes', async () => {
    const [one, other] = [await open(), await open()];
    expect(one.keys.verify(key)).toBeUndefined();
    await Promise.all([one.keys.install(key, operator), other.keys.install(key, operator)]);
    expect(one.keys.verify(key)).toEqual({ id: '0123456789abcdef', ...operator });
    const [view] = one.keys.list();
    expect(await (await open()).keys.install(key, operator)).toBe('known');
    expect((await open()).keys.list()).toEqual([view]);
    const { streamInfo } = await (await new Kvm(nc).open(names.buckets.keys)).status();
    expect(streamInfo.state.last_seq).toBe(1);
  });

  test('stays revoked, and never replaces another key', async () => {
    const { keys } = await open();
    await keys.revoke('0123456789abcdef');
    expect(await keys.install(key, operator)).toBe('revoked');
    expect(keys.verify(key)).toBeUndefined();
    const impostor = `tl_0123456789abcdef_${'x'.repeat(43)}`;
    await expect(keys.install(impostor, operator)).rejects.toMatchObject({ code: 'config_invalid' });
    await expect(keys.install('secret', operator)).rejects.toMatchObject({ code: 'config_invalid' });
  });
});

describe('a pause', () => {
  const pause = { reason: 'the bank is down', actor: 'key:1', at: createdAt };

  test('is heard of in other processes, and so is its end', async () => {
    const [writer, reader] = [await open(), await open()];
    const heard: [PauseScope, string | undefined][] = [];
    reader.pauses.onChange((scope, held) => heard.push([scope, held?.reason]));
    await writer.pauses.put({ type: 'mail' }, pause);
    await writer.pauses.put({ tenant: 'acme', type: 'mail' }, { ...pause, until: createdAt });
    expect(writer.pauses.get({ type: 'mail' })).toEqual({ paused: true, ...pause });
    await eventually(() => expect(reader.pauses.list()).toHaveLength(2));
    expect(await writer.pauses.remove({ type: 'mail' })).toBe(true);
    expect(await writer.pauses.remove({ type: 'mail' })).toBe(false);
    await eventually(() =>
      expect(reader.pauses.list()).toEqual([
        { paused: true, ...pause, until: createdAt, tenant: 'acme', type: 'mail' },
      ]),
    );
    expect(heard).toEqual([
      [{ type: 'mail' }, pause.reason],
      [{ tenant: 'acme', type: 'mail' }, pause.reason],
      [{ type: 'mail' }, undefined],
    ]);
    expect((await open()).pauses.get({ type: 'mail' })).toBeUndefined();
  });

  test('without a reason is not stored', async () => {
    const registry = await open();
    await expect(registry.pauses.put({ type: 'other' }, { ...pause, reason: '' })).rejects.toThrow();
    expect(registry.pauses.get({ type: 'other' })).toBeUndefined();
  });
});

test('a registry hears of changes after the server has lost its watch', async () => {
  const registry = await open();
  const jsm = await jetstreamManager(nc);
  const stream = `KV_${names.buckets.types}`;
  for await (const { name } of jsm.consumers.list(stream)) await jsm.consumers.delete(stream, name);
  const writer = await open();
  await writer.types.put({ type: 'after', priority: 1 });
  await eventually(() => expect(registry.types.get('after')).toEqual({ type: 'after', priority: 1 }), {
    timeoutMs: 30_000,
  });
});

test('a registry forgets what a bucket had that was made anew, and hears of what it has', async () => {
  const own = namesOf(`${prefix}anew_`);
  await ensureStreams({ nc, names: own, config: loadConfig({}), logger: silentLogger });
  const openOwn = async () => {
    const registry = openRegistry({ nc, names: own, logger: silentLogger });
    await registry.start();
    return registry;
  };
  const registry = await openOwn();
  await registry.types.put({ type: 'old', priority: 1 });
  await (await jetstreamManager(nc)).streams.delete(`KV_${own.buckets.types}`);
  await ensureStreams({ nc, names: own, config: loadConfig({}), logger: silentLogger });
  const writer = await openOwn();
  for (const priority of [1, 2, 3]) await writer.types.put({ type: 'new', priority });
  await eventually(
    () => {
      expect(registry.types.get('old')).toBeUndefined();
      expect(registry.types.get('new')).toEqual({ type: 'new', priority: 3 });
    },
    { timeoutMs: 30_000 },
  );
  await registry.stop();
  await writer.stop();
});

test('a registry forgets what was purged from a bucket, which nothing tells a watch of', async () => {
  const own = namesOf(`${prefix}purged_`);
  await ensureStreams({ nc, names: own, config: loadConfig({}), logger: silentLogger });
  const registry = openRegistry({ nc, names: own, logger: silentLogger });
  await registry.start();
  const { key } = await registry.keys.create({ tenant: 'acme', scopes: ['submit'], name: 'leaked' });
  await registry.types.put({ type: 'old', priority: 1 });
  const heard: [string, unknown][] = [];
  registry.types.onChange((name, settings) => heard.push([name, settings]));
  const jsm = await jetstreamManager(nc);
  await jsm.streams.purge(`KV_${own.buckets.types}`);
  await registry.types.put({ type: 'new', priority: 2 });
  await jsm.streams.purge(`KV_${own.buckets.keys}`);
  await eventually(
    () => {
      expect(registry.keys.verify(key)).toBeUndefined();
      expect(registry.types.list()).toEqual([{ type: 'new', priority: 2 }]);
    },
    { timeoutMs: 30_000 },
  );
  expect(heard).toEqual([
    ['new', { type: 'new', priority: 2 }],
    ['old', undefined],
  ]);
  await registry.stop();
});

test('stopping twice, and before starting, is fine', async () => {
  const registry = openRegistry({ nc, names, logger: silentLogger });
  await registry.stop();
  await registry.start();
  await registry.stop();
  await registry.stop();
});

describe('a registry whose buckets do not answer', () => {
  let way: TcpProxy;
  let away: NatsConnection;
  beforeEach(async () => {
    way = await startTcpProxy({ port: Number(new URL(testNatsUrl()).port) });
    away = await connect({ servers: `127.0.0.1:${way.port}` });
    way.blackhole();
  });
  afterEach(async () => {
    await away.close();
    await way.close();
  });

  test('gives its start up when the patience is at its end, and says which one was waited for', async () => {
    const registry = openRegistry({ nc: away, names, logger: silentLogger });
    await expect(registry.start(new Patience({ forMs: 500 }))).rejects.toMatchObject({
      code: 'log_unavailable',
      message: expect.stringContaining(`now for mirror of ${names.buckets.tenants}`),
    });
  });

  test('ends its start when it is told to, and waits for no answer then', async () => {
    const stop = new AbortController();
    const registry = openRegistry({ nc: away, names, logger: silentLogger });
    const starting = registry.start(new Patience({ forMs: 3_600_000, signal: stop.signal }));
    stop.abort();
    await expect(starting).rejects.toMatchObject({ code: 'shutting_down' });
    await registry.stop();
  });
});

describe('an API key', () => {
  test('is stored as a hash only', async () => {
    const registry = await open();
    const { key, id } = await registry.keys.create({ tenant: 'acme', scopes: ['read'], name: 'ci' });
    const bucket = await new Kvm(nc).open(names.buckets.keys);
    const stored = (await bucket.get(id))?.string() ?? '';
    const [, , secret = ''] = key.match(/^tl_([0-9a-f]{16})_(.{43})$/) ?? [];
    expect(secret).toHaveLength(43);
    expect(stored).not.toContain(secret);
    expect(registry.keys.verify(key)).toEqual({ id, tenant: 'acme', scopes: ['read'], name: 'ci' });
  });

  test('of no valid tenant is not made', async () => {
    const registry = await open();
    await expect(registry.keys.create({ tenant: 'a.b', scopes: ['read'], name: 'x' })).rejects.toThrow('a.b');
  });

  test('that is revoked stays listed with the time, and revoking twice is fine', async () => {
    const registry = await open();
    const { key, id } = await registry.keys.create({ tenant: 'zeta', scopes: ['read'], name: 'x' });
    expect(await registry.keys.revoke(id)).toBe(true);
    expect(await registry.keys.revoke(id)).toBe(true);
    expect(await registry.keys.revoke('0'.repeat(16))).toBe(false);
    expect(registry.keys.verify(key)).toBeUndefined();
    expect(registry.keys.list('zeta')).toEqual([
      expect.objectContaining({ id, revokedAt: expect.any(String) }),
    ]);
  });
});
