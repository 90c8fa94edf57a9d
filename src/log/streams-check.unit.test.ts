import type { StreamInfo } from '@nats-io/jetstream';
import { describe, expect, test } from 'vitest';
import { judgeStorage, judgeStream } from './streams-check.ts';

const SECOND_NS = 1_000_000_000;
type Peer = { name: string; current: boolean; active: number; offline?: boolean; lag?: number };
const peer = (name: string, over: Partial<Peer> = {}): Peer => ({
  name,
  current: true,
  active: SECOND_NS,
  ...over,
});

function judged(
  peers: Peer[],
  { leader = 'n1', bytes = 0, limit = -1 }: { leader?: string; bytes?: number; limit?: number } = {},
) {
  return judgeStream({
    config: { name: 'TASKS', num_replicas: peers.length + 1, max_bytes: limit },
    state: { bytes },
    ...(peers.length > 0 && { cluster: { name: 'c', leader, replicas: peers } }),
  } as unknown as StreamInfo);
}

describe('a stream', () => {
  test('with all its copies, or the one that it has, is not told of, though copies lag a little', () => {
    expect(judged([])).toEqual({ troubles: [], remarks: [] });
    expect(judged([peer('n2'), peer('n3', { current: false })])).toEqual({ troubles: [], remarks: [] });
  });

  test('that lacks a copy still works: a remark says which', () => {
    for (const away of [peer('n3', { offline: true }), peer('n3', { active: 11 * SECOND_NS })])
      expect(judged([peer('n2'), away])).toEqual({
        troubles: [],
        remarks: ['TASKS: 2 of 3 copies, without n3'],
      });
  });

  test('with a copy that takes nothing, though its server is there, is told of', () => {
    const behind = { current: false, lag: 13 };
    expect(judged([peer('n2'), peer('n3', behind)]).remarks).toEqual([]);
    expect(judged([peer('n2'), peer('n3', { ...behind, active: 0 })])).toEqual({
      troubles: [],
      remarks: ['TASKS: the copy on n3 is 13 behind and silent'],
    });
  });

  test('without a majority, or a leader, is trouble', () => {
    const away = { offline: true };
    expect(judged([peer('n2', away), peer('n3', away)]).troubles).toEqual([
      'TASKS: 1 of 3 copies, without n2, n3: no majority, nothing can be stored',
    ]);
    expect(judged([peer('n2'), peer('n3')], { leader: '' }).troubles).toEqual(['TASKS has no leader']);
  });

  test('is told of when it is nearly full', () => {
    expect(judged([], { bytes: 89, limit: 100 }).remarks).toEqual([]);
    expect(judged([], { bytes: 95, limit: 100 }).remarks).toEqual(['TASKS fills 95 % of its 100 bytes']);
  });
});

test('storage that is nearly used up is a remark, and trouble when it is', () => {
  expect(judgeStorage(1e12, -1)).toEqual({ troubles: [], remarks: [] });
  expect(judgeStorage(91, 100)).toMatchObject({ troubles: [], remarks: [expect.stringContaining('91 %')] });
  expect(judgeStorage(100, 100).troubles).toEqual([
    'the account fills 100 % of its 100 bytes of storage: nothing can be stored',
  ]);
});
