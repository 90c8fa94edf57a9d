import { describe, expect, test } from 'vitest';
import { complete, fail, queue, TASK_ID } from '../../../test/support/life.ts';
import { outcomeLine, ownerLine, readSpool, type SpooledOutcome, toldLine } from './spool-format.ts';

const owner = { worker: 'w1', host: 'h', pid: 7, startedAt: '123' };
const id = (n: number) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`;
const outcome = (n: number, result?: string): SpooledOutcome => ({
  tenant: 'acme',
  taskId: TASK_ID,
  command: { ...complete('w1', n), eventId: id(n), ...(result === undefined ? {} : { result }) },
});

describe('a spool', () => {
  test('gives back what was written, but for what was told', () => {
    const failed: SpooledOutcome = {
      tenant: 'acme',
      taskId: TASK_ID,
      command: { ...fail(), eventId: id(9) },
    };
    const text = [ownerLine(owner), outcomeLine(outcome(1)), outcomeLine(failed), toldLine(id(1))].join('');
    expect(readSpool(text)).toEqual({ owner, untold: [failed], damaged: 0 });
  });

  test('keeps a line a line, whatever a result holds', () => {
    const nasty = outcome(1, 'a\nb\r\n\u2028 "é" \\');
    expect(readSpool(ownerLine(owner) + outcomeLine(nasty)).untold).toEqual([nasty]);
  });

  test('that was broken off anywhere loses the last line at most', () => {
    const whole = ownerLine(owner) + outcomeLine(outcome(1)) + outcomeLine(outcome(2));
    const before = ownerLine(owner).length + outcomeLine(outcome(1)).length;
    for (let end = before; end < whole.length - 1; end++) {
      const read = readSpool(whole.slice(0, end));
      expect(read).toEqual({ owner, untold: [outcome(1)], damaged: 0 });
    }
  });

  test('goes on after a torn line that a later write closed, and counts it', () => {
    const text = `${ownerLine(owner)}${outcomeLine(outcome(1)).slice(0, 40)}\n${outcomeLine(outcome(2))}`;
    expect(readSpool(text)).toEqual({ owner, untold: [outcome(2)], damaged: 1 });
  });

  test('refuses a line with one bit flipped', () => {
    const line = outcomeLine(outcome(1, 'aaaa'));
    expect(readSpool(`${ownerLine(owner)}${line.replace('aaaa', 'aaab')}`)).toMatchObject({
      untold: [],
      damaged: 1,
    });
  });

  test('holds outcomes only', () => {
    const stranger = { tenant: 'acme', taskId: TASK_ID, command: queue() } as unknown as SpooledOutcome;
    expect(readSpool(ownerLine(owner) + outcomeLine(stranger)).untold).toEqual([]);
  });
});
