import type { NatsConnection } from '@nats-io/transport-node';
import { describe, expect, test } from 'vitest';
import { silentLogger } from '../observe/log.ts';
import { createBacklog } from './backlog.ts';

async function setup(limits: Record<string, number> = {}) {
  let now = 1_000;
  let deliver: (text: string) => void = () => {};
  const nc: Pick<NatsConnection, 'subscribe'> = {
    subscribe: (_subject, { callback } = {}) => {
      deliver = (text) => {
        void callback?.(null, { string: () => text } as never);
      };
      return { isClosed: () => false, unsubscribe() {} } as never;
    },
  };
  let opened = 0;
  const backlog = createBacklog({
    nc,
    names: { backlog: 'dispatch.backlog' },
    clock: { now: () => now },
    logger: silentLogger,
    limitOf: (type) => limits[type] ?? 100,
    delayedLimit: 10,
    tenantLimitOf: (tenant) => (tenant === 'acme' ? 10 : undefined),
  });
  backlog.onOpen(() => {
    opened += 1;
  });
  await backlog.start();
  return {
    backlog,
    announce: (waiting: Record<string, number>) => deliver(JSON.stringify({ waiting })),
    say: (text: string) => deliver(text),
    pass: (ms: number) => {
      now += ms;
    },
    opened: () => opened,
  };
}

describe('a type', () => {
  test('is not full before anything was announced', async () => {
    const { backlog } = await setup();
    expect(backlog.full('a')).toBeUndefined();
    expect(backlog.waiting('a')).toBeUndefined();
  });

  test('is full at its limit and until 80 % of it', async () => {
    const { backlog, announce, opened } = await setup({ b: 10 });
    const fullAt = (waiting: number) => {
      announce({ b: waiting });
      return backlog.full('b') !== undefined;
    };
    expect([9, 10, 9, 8, 9, 10].map(fullAt)).toEqual([false, true, true, false, false, true]);
    expect(opened()).toBe(1);
    expect(backlog.anyFull()).toEqual({ type: 'b', waiting: 10, limit: 10 });
    expect(backlog.full('a')).toBeUndefined();
  });

  test('that is no longer announced waits for nothing', async () => {
    const { backlog, announce } = await setup();
    announce({ a: 100 });
    announce({});
    expect(backlog.full('a')).toBeUndefined();
    expect(backlog.waiting('a')).toBe(0);
  });

  test('is let through when the dispatcher falls silent', async () => {
    const { backlog, announce, pass } = await setup();
    announce({ a: 100 });
    pass(5_000);
    expect(backlog.full('a')).toBeDefined();
    pass(1);
    expect(backlog.full('a')).toBeUndefined();
    expect(backlog.anyFull()).toBeUndefined();
    expect(backlog.waiting('a')).toBeUndefined();
  });
});

test.each(['', '{', 'null', '[]', '{"waiting":7}', '{"waiting":null}'])(
  'the announcement %j changes nothing',
  async (text) => {
    const { backlog, announce, say } = await setup();
    announce({ a: 100 });
    say(text);
    expect(backlog.full('a')).toBeDefined();
  },
);

test('tasks that wait for a time are counted apart: they fill nothing but themselves', async () => {
  const { backlog, say, opened } = await setup();
  const fullAt = (delayed: number) => {
    say(JSON.stringify({ waiting: { a: 1 }, delayed: { a: delayed } }));
    return backlog.fullDelayed('a') !== undefined;
  };
  expect([9, 10, 9, 8].map(fullAt)).toEqual([false, true, true, false]);
  expect(fullAt(1_000)).toBe(true);
  expect(backlog.fullDelayed('a')).toEqual({ type: 'a', waiting: 1_000, limit: 10 });
  expect(backlog.delayed('a')).toBe(1_000);
  expect(backlog.waiting('a')).toBe(1);
  expect(backlog.full('a')).toBeUndefined();
  expect(backlog.anyFull()).toBeUndefined();
  expect(opened()).toBe(0);
});

describe('a tenant', () => {
  test('with a limit of its own is full at it and until 80 % of it; others never are', async () => {
    const { backlog, say, opened } = await setup();
    const fullAt = (waiting: number) => {
      say(JSON.stringify({ waiting: {}, tenants: { acme: waiting, zeta: 1_000_000 } }));
      return backlog.fullTenant('acme') !== undefined;
    };
    expect([9, 10, 9, 8, 9].map(fullAt)).toEqual([false, true, true, false, false]);
    expect(fullAt(12)).toBe(true);
    expect(backlog.fullTenant('acme')).toEqual({ tenant: 'acme', waiting: 12, limit: 10 });
    expect(backlog.fullTenant('zeta')).toBeUndefined();
    // The gateway goes on: what one tenant has too much of is no reason to keep the others' messages waiting.
    expect(backlog.anyFull()).toBeUndefined();
    expect(opened()).toBe(0);
  });
});
