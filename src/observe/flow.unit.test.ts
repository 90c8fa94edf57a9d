import { describe, expect, test } from 'vitest';
import { blame, Flow, STALL_MS, type WorkerSight } from './flow.ts';

const worker = (over: Partial<WorkerSight> = {}): WorkerSight => ({
  types: ['mail'],
  concurrency: 2,
  active: [],
  ...over,
});
const notice = (ready: number, claimed: number) => ({
  waiting: { mail: ready },
  flow: { mail: { ready, claimed } },
});

/** Announcements every second, `STALL_MS` long. */
function announced(at: (second: number) => { ready: number; claimed: number }): Flow {
  const flow = new Flow();
  for (let ms = 0; ms <= STALL_MS; ms += 1_000) {
    const { ready, claimed } = at(ms / 1_000);
    flow.heard(notice(ready, claimed), ms);
  }
  return flow;
}

describe('work flows', () => {
  test('while claims go on', () => {
    expect(announced((second) => ({ ready: 9, claimed: second })).stalled(STALL_MS)).toEqual([]);
  });

  test('when nothing is ready', () => {
    expect(announced(() => ({ ready: 0, claimed: 4 })).stalled(STALL_MS)).toEqual([]);
  });

  test('when a new leader counts claims anew', () => {
    const flow = announced((second) => ({ ready: 9, claimed: second < 8 ? 4 : 0 }));
    expect(flow.stalled(STALL_MS)).toEqual([]);
  });

  test('as far as is known before any dispatcher has spoken', () => {
    expect(new Flow().silence(1e9)).toBeUndefined();
  });
});

describe('work stands still', () => {
  const [stalled] = announced(() => ({ ready: 9, claimed: 4 })).stalled(STALL_MS);

  test('when what is ready is not claimed', () => {
    expect(stalled).toEqual({ line: 'mail', ready: 9, forMs: STALL_MS });
  });

  test.each<[string, WorkerSight[], RegExp | undefined]>([
    ['a worker with room is to blame', [worker({ active: [1, 2] }), worker()], /1 of 2 workers have room/],
    ['busy workers are not', [worker({ active: [1, 2] })], undefined],
    ['no worker at all is not', [worker({ types: ['other'] })], undefined],
    ['workers that take no work are', [worker({ degraded: 'disk full' })], /take no work \(disk full\)/],
  ])('%s', (_name, workers, told) => {
    if (stalled === undefined) throw new Error('nothing is stalled');
    if (told === undefined) expect(blame(stalled, workers)).toBeUndefined();
    else expect(blame(stalled, workers)).toMatch(told);
  });

  test('only workers of its version are to blame for a version of a type', () => {
    const second = { line: 'mail@2', ready: 1, forMs: STALL_MS };
    expect(blame(second, [worker()])).toBeUndefined();
    expect(blame(second, [worker({ versions: { mail: [1, 2] } })])).toMatch(/1 of 1 workers have room/);
  });

  test('when the dispatcher falls silent while tasks wait', () => {
    const flow = new Flow();
    flow.heard(notice(3, 0), 0);
    expect(flow.silence(STALL_MS - 1)).toBeUndefined();
    expect(flow.silence(STALL_MS)).toMatch(/no dispatcher has spoken for 15 s while 3 tasks wait/);
  });
});
