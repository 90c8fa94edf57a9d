import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import packageJson from '../../package.json' with { type: 'json' };
import { defineTask } from './define-task.ts';
import type { HandlerContext } from './handler.ts';
import { VERSION } from './identity.ts';
import { planOf } from './options.ts';

const run = () => 1;

describe('the options of a worker', () => {
  test('a number is the limit over all types', () => {
    const { total, byType } = planOf({ types: { a: run, b: run }, concurrency: 4 });
    expect({ total, byType: byType.size }).toEqual({ total: 4, byType: 0 });
  });

  test('limits by type add up, and a type without one has ten', () => {
    const { total, byType } = planOf({ types: { a: run, b: run }, concurrency: { a: 2 } });
    expect({ total, ...Object.fromEntries(byType) }).toEqual({ total: 12, a: 2, b: 10 });
  });

  test('every worker has an id of its own, in characters that a registry key may have', () => {
    const ids = [1, 2].map(() => planOf({ types: { a: run }, id: 'gpu worker.é' }).id);
    expect(new Set(ids).size).toBe(2);
    for (const id of ids) expect(id).toMatch(/^gpu-worker---[0-9]+-[0-9a-f]{8}$/);
  });

  test.each([
    ['no type', { types: {} }, 'config_invalid'],
    ['a type that is no name', { types: { 'a.b': run } }, 'name_invalid'],
    [
      'a handler of another type',
      { types: { a: defineTask({ type: 'b', payload: z.any() }).handle(run) } },
      'config_invalid',
    ],
    ['no slot', { types: { a: run }, concurrency: 0 }, 'config_invalid'],
    ['half a slot', { types: { a: run }, concurrency: { a: 1.5 } }, 'config_invalid'],
    ['no ack-wait', { types: { a: run }, ackWaitMs: 0 }, 'config_invalid'],
  ])('refuses %s', (_what, options, code) => {
    expect(() => planOf(options)).toThrow(expect.objectContaining({ code }));
  });

  test('a url stands for settings without credentials', () => {
    expect(planOf({ types: { a: run }, nats: 'nats://n1:4222' }).leaseNats.natsUrl).toBe('nats://n1:4222');
  });
});

test('the version in the registry is the package’s', () => {
  expect(VERSION).toBe(packageJson.version);
});

test('a handler may say which payload it expects', () => {
  type Clip = { readonly url: string };
  const handler = ({ payload }: HandlerContext<Clip>) => payload.url;
  expect(planOf({ types: { a: handler } }).runnables.has('a')).toBe(true);
});
