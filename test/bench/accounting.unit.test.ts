import { describe, expect, test } from 'vitest';
import { needs } from '../support/needs.ts';
import { canAccount, cpuSeconds, parseStat, parseStatus, processTree } from './accounting.ts';

describe('/proc', () => {
  const proc = needs('/proc of Linux', canAccount);

  test('the times are found although the program has spaces and brackets in its name', () => {
    const text = '42 (a (b) c) S 7 42 42 0 -1 4194560 1 2 3 4 150 50 25 75 20 0 11 0 1 1 1';
    expect(parseStat(text)).toEqual({ parentPid: 7, ownSeconds: 2, reapedSeconds: 1 });
  });

  test('memory is told apart by kind, and a kind that is missing is none', () => {
    const text = 'Name:\tnode\nRssAnon:\t    2048 kB\nRssFile:\t     512 kB\n';
    expect(parseStatus(text)).toEqual({ anonKib: 2048, sharedKib: 0, fileKib: 512 });
  });

  test('a process that is gone counts for nothing', proc, () => {
    const beyondAnyPid = 2 ** 30;
    expect(processTree([beyondAnyPid])).toEqual([]);
    expect(cpuSeconds([beyondAnyPid])).toBe(0);
  });

  test('CPU that this process burns is counted to it', proc, () => {
    const before = cpuSeconds([process.pid]);
    const atFirst = process.cpuUsage();
    while (burntMs(atFirst) < 200) Math.sqrt(before);
    expect(cpuSeconds([process.pid]) - before).toBeGreaterThan(0.05);
  });
});

/** However long that takes beside others. */
function burntMs(since: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1_000;
}
