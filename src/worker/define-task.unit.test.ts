import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { defineTask } from './define-task.ts';

const transcode = defineTask({
  type: 'transcode',
  payload: z.object({ url: z.url(), height: z.int().default(720) }),
  result: z.object({ frames: z.int() }),
});

describe('defineTask', () => {
  test('makes the body of a submission with what the submitter said', () => {
    expect(transcode.submission({ url: 'https://clips.example/1' }, { priority: 1, delayMs: 5 })).toEqual({
      type: 'transcode',
      payload: { url: 'https://clips.example/1' },
      priority: 1,
      delayMs: 5,
    });
  });

  test('refuses a payload that does not fit, naming the field', () => {
    expect(() => transcode.submission({ url: 'no url' })).toThrow(
      expect.objectContaining({
        code: 'request_invalid',
        field: 'payload',
        message: expect.stringContaining('payload.url'),
      }),
    );
  });

  test('refuses a type that is no name', () => {
    expect(() => defineTask({ type: 'Bad.Type', payload: z.any() })).toThrow(
      expect.objectContaining({ code: 'name_invalid' }),
    );
  });

  test('gives the handler the parsed payload, defaults included', () => {
    const handler = transcode.handle(({ payload }) => ({ frames: payload.height }));
    expect(handler.parsePayload({ url: 'https://clips.example/1' })).toEqual({
      ok: true,
      value: { url: 'https://clips.example/1', height: 720 },
    });
  });

  test('finds a result that does not fit, naming the field', () => {
    const handler = transcode.handle(() => ({ frames: 1 }));
    expect(handler.parseResult({ frames: 'many' })).toMatchObject({
      ok: false,
      reason: expect.stringContaining('result.frames'),
    });
  });

  test('without a result schema any result fits', () => {
    const free = defineTask({ type: 'free', payload: z.null() }).handle(() => ({ any: 'thing' }));
    expect(free.parseResult({ any: 'thing' })).toEqual({ ok: true, value: { any: 'thing' } });
  });
});
