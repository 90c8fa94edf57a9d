import type { Msg } from '@nats-io/transport-node';
import { describe, expect, test } from 'vitest';
import { lastSequenceIn, parsePubAck } from './pub-ack.ts';

const answer = (text: string) => ({ data: Buffer.from(text) }) as unknown as Msg;

describe('an answer to a message', () => {
  test('says where it is stored', () => {
    expect(parsePubAck(answer('{"stream":"TASKS","seq":9007199254740991}'))).toEqual({
      kind: 'stored',
      stream: 'TASKS',
      seq: Number.MAX_SAFE_INTEGER,
    });
  });

  test('says why it is refused', () => {
    const text =
      '{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 41"},"stream":"TASKS","seq":0}';
    const ack = parsePubAck(answer(text));
    expect(ack).toEqual({
      kind: 'refused',
      code: 10_071,
      description: 'wrong last sequence: 41',
      passing: false,
    });
    expect(ack.kind === 'refused' && lastSequenceIn(ack.description)).toBe(41);
  });

  test('that is empty means that nobody listens', () => {
    expect(parsePubAck(answer(''))).toMatchObject({ kind: 'no_responders' });
  });

  test.each([
    {
      code: 503,
      err_code: 10_163,
      description: 'expected last sequence per subject temporarily unavailable',
    },
    { code: 400, err_code: 10_164, description: 'wrong last sequence' },
    { code: 503, err_code: 10_077, description: 'stream write error' },
    { code: 429, err_code: 10_167, description: 'too many requests' },
    { code: 500, err_code: 10_047, description: 'insufficient storage resources available' },
  ])('is passing when it says "$description"', (error) => {
    expect(parsePubAck(answer(JSON.stringify({ error })))).toMatchObject({ kind: 'refused', passing: true });
  });

  test('that is no JSON is a refusal', () => {
    expect(parsePubAck(answer('+OK'))).toMatchObject({ kind: 'refused', code: 0 });
  });

  test('without a sequence in its refusal gives 0', () => {
    expect(lastSequenceIn('wrong last sequence')).toBe(0);
  });
});
