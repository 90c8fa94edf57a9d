import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { askAgain } from './ask-again.ts';

/** A server that drops the first `dropped` questions without a word. */
function dropping(dropped: number) {
  let asked = 0;
  return {
    asked: () => asked,
    ask: (): Promise<number> => {
      asked += 1;
      return asked <= dropped ? new Promise(() => {}) : Promise.resolve(asked);
    },
  };
}

describe('a question that may be put more than once', () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  it('is put once when it is answered', async () => {
    const server = dropping(0);
    expect(await askAgain(server.ask)).toBe(1);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(server.asked()).toBe(1);
  });

  it('is put again every second until there is an answer, and then no more', async () => {
    const server = dropping(2);
    const answer = askAgain(server.ask);
    await vi.advanceTimersByTimeAsync(1_999);
    expect(server.asked()).toBe(2);
    await vi.advanceTimersByTimeAsync(1);
    expect(await answer).toBe(3);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(server.asked()).toBe(3);
  });

  it('takes an answer that comes late to an earlier one', async () => {
    let answerFirst: (answer: string) => void = () => {};
    const asked: (() => Promise<string>)[] = [
      () => new Promise((resolve) => (answerFirst = resolve)),
      () => new Promise(() => {}),
    ];
    const answer = askAgain(() => asked.shift()?.() ?? Promise.reject(new Error('asked too often')));
    await vi.advanceTimersByTimeAsync(1_500);
    answerFirst('late');
    expect(await answer).toBe('late');
    expect(asked).toEqual([]);
  });

  it('fails with the first failure, and is put no more', async () => {
    let asked = 0;
    const answer = askAgain(() => {
      asked += 1;
      return Promise.reject(new Error('no responders'));
    });
    await expect(answer).rejects.toThrow('no responders');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(asked).toBe(1);
  });
});
