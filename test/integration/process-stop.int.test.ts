import { setTimeout as pause } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';

const started: NodeProcess[] = [];
afterEach(async () => {
  for (const each of started.splice(0)) await each.stop('SIGKILL');
});

/** A process that runs one service which takes `stopMs` to stop. */
function start({ stopMs, graceMs, how = 'at once' }: { stopMs: number; graceMs: number; how?: string }) {
  const child = startNodeProcess(
    'test/support/stubborn-process.ts',
    [String(stopMs), String(graceMs), how],
    {},
  );
  started.push(child);
  return child;
}

test.each(['SIGTERM', 'SIGINT'] as const)('%s stops a process in order, with exit code 0', async (signal) => {
  const child = start({ stopMs: 300, graceMs: 20_000 });
  await child.logged('running');
  process.kill(child.pid, signal);
  expect(await child.ended).toBe(0);
  await child.logged('stopped');
});

test('a process that does not stop within its grace ends with exit code 1, and says what it waited for', async () => {
  const child = start({ stopMs: 60_000, graceMs: 300 });
  await child.logged('running');
  process.kill(child.pid, 'SIGTERM');
  expect(await child.ended).toBe(1);
  expect(await child.logged('not stopped in time: ending')).toMatchObject({ waitsFor: 'the slow part' });
});

test.each([
  { signal: 'SIGTERM', code: 143 },
  { signal: 'SIGINT', code: 130 },
] as const)(
  'another $signal ends a process at once; the same one twice in a moment does not',
  async ({ signal, code }) => {
    const child = start({ stopMs: 60_000, graceMs: 50_000, how: 'twice' });
    await child.logged('running');
    process.kill(child.pid, signal);
    await child.logged('told twice');
    await pause(400);
    expect(child.lines.filter((line) => line.includes('ending'))).toEqual([]);
    process.kill(child.pid, signal);
    expect(await child.ended).toBe(code);
  },
);

test('a process that is told to stop while it starts does, with exit code 0', async () => {
  const child = start({ stopMs: 0, graceMs: 20_000, how: 'slow' });
  await child.logged('starting');
  process.kill(child.pid, 'SIGTERM');
  expect(await child.ended).toBe(0);
});
