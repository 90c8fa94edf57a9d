import { expect, test } from 'vitest';
import { z } from 'zod';
import { defineTask } from './define-task.ts';
import { runHandler } from './testing.ts';

test('a handler runs in memory and its outcome is what a worker would settle', async () => {
  expect(await runHandler(({ payload }) => ({ got: payload }), { clip: 1 })).toEqual({
    status: 'completed',
    result: { got: { clip: 1 } },
  });
  expect(
    await runHandler(() => {
      throw new Error('no');
    }, null),
  ).toMatchObject({ status: 'failed', error: { message: 'no' } });
});

test('a typed handler is checked as in a worker', async () => {
  const half = defineTask({ type: 'half', payload: z.object({ n: z.number() }), result: z.number() });
  expect(
    await runHandler(
      half.handle(({ payload }) => payload.n / 2),
      { n: 4 },
    ),
  ).toEqual({
    status: 'completed',
    result: 2,
  });
  expect(
    await runHandler(
      half.handle(() => 1),
      { n: 'x' },
    ),
  ).toMatchObject({
    final: 'not_retryable',
    error: { code: 'payload_invalid' },
  });
});

test('the handler sees the task it is told of, its progress is heard, and its signal obeys', async () => {
  const progress: unknown[] = [];
  const stop = new AbortController();
  const outcome = await runHandler(
    async ({ task, attempt, idempotencyKey, signal, heartbeat }) => {
      heartbeat({ task: task.id, attempt, idempotencyKey });
      stop.abort();
      signal.throwIfAborted();
    },
    null,
    {
      task: { id: 't1', tenant: 'acme', attempt: 3 },
      onProgress: (told) => progress.push(told),
      abort: stop.signal,
    },
  );
  expect(outcome).toEqual({ status: 'cancelled' });
  expect(progress).toEqual([{ task: 't1', attempt: 3, idempotencyKey: 'acme:t1' }]);
});
