import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Admission } from './admission.ts';
import type { Delivery } from './delivery.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function setup({ total = 2, byType = {} }: { total?: number; byType?: Record<string, number> } = {}) {
  const begun: number[] = [];
  const handedBack: number[] = [];
  const admission = new Admission({
    total,
    byType: new Map(Object.entries(byType)),
    begin: ({ seq }) => begun.push(seq),
    handBack: ({ seq }) => handedBack.push(seq),
  });
  const offer = (seq: number, type = 'a') => admission.offer({ seq, type } as Delivery);
  return { admission, offer, begun, handedBack };
}

describe('admission', () => {
  test('begins what there are slots for, and the next when one ends', () => {
    const { admission, offer, begun } = setup();
    for (const seq of [1, 2, 3]) offer(seq);
    expect(begun).toEqual([1, 2]);
    admission.done('a');
    expect(begun).toEqual([1, 2, 3]);
  });

  test('hands back what finds no slot soon', () => {
    const { offer, begun, handedBack } = setup({ total: 1 });
    offer(1);
    offer(2);
    vi.advanceTimersByTime(300);
    expect({ begun, handedBack }).toEqual({ begun: [1], handedBack: [2] });
  });

  test('keeps a type to its own limit while another goes on', () => {
    const { offer, begun, admission } = setup({ total: 3, byType: { a: 1, b: 2 } });
    offer(1, 'a');
    offer(2, 'a');
    offer(3, 'b');
    expect(begun).toEqual([1, 3]);
    expect(admission.freeFor('a')).toBe(0);
    admission.done('b');
    expect(begun).toEqual([1, 3]);
    admission.done('a');
    expect(begun).toEqual([1, 3, 2]);
  });

  test('once closed begins nothing and hands back what waits and what comes', () => {
    const { admission, offer, begun, handedBack } = setup({ total: 1 });
    offer(1);
    offer(2);
    admission.close();
    offer(3);
    admission.done('a');
    expect({ begun, handedBack }).toEqual({ begun: [1], handedBack: [2, 3] });
    expect(admission.free).toBe(0);
  });

  test('is idle when nothing runs and nothing waits', async () => {
    const { admission, offer } = setup({ total: 1 });
    await admission.whenIdle();
    offer(1);
    let idle = false;
    void admission.whenIdle().then(() => {
      idle = true;
    });
    await Promise.resolve();
    expect(idle).toBe(false);
    admission.done('a');
    await admission.whenIdle();
    expect(idle).toBe(true);
  });
});
