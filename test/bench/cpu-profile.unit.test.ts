import { expect, test } from 'vitest';
import { type CpuProfile, profileText, summarizeProfile } from './cpu-profile.ts';

const frame = (functionName: string, url: string, lineNumber: number) => ({ functionName, url, lineNumber });
const profile: CpuProfile = {
  nodes: [
    { id: 1, callFrame: frame('(root)', '', -1), children: [2, 3, 4] },
    { id: 2, callFrame: frame('(idle)', '', -1) },
    { id: 3, callFrame: frame('append', 'file:///somewhere/dist/src/log/append.js', 9) },
    {
      id: 4,
      callFrame: frame('', 'file:///somewhere/node_modules/@scope/package/lib/index.js', 0),
      children: [5],
    },
    { id: 5, callFrame: frame('append', 'file:///somewhere/dist/src/log/append.js', 9) },
  ],
  samples: [2, 3, 4, 5],
  timeDeltas: [1_000, 2_000, 1_000, 1_000],
};

test('time is counted to the function itself, wherever it was called from, and idle time to none', () => {
  const summary = summarizeProfile(profile);
  expect(summary).toMatchObject({ totalMs: 5, busyMs: 4 });
  expect(summary.functions).toEqual([
    { where: 'append dist/src/log/append.js:10', selfMs: 3, share: 0.75 },
    { where: '(anonymous) @scope/package/lib/index.js:1', selfMs: 1, share: 0.25 },
  ]);
});

test('files and packages are shown with their part of the busy time', () => {
  const text = profileText('worker', summarizeProfile(profile));
  expect(text).toContain('worker: busy 4 of 5 ms');
  expect(text).toMatch(/75\.0 % +3 ms {2}dist\/src\/log\/append\.js/);
});
