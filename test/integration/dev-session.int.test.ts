import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { openPortBook } from '../../deploy/dev/ports.ts';
import { describeProcess } from '../../src/platform/embedded/process-info.ts';
import { eventually } from '../support/eventually.ts';

const OWNER = fileURLToPath(new URL('../support/dev-session-owner.ts', import.meta.url));

async function scratchDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'taskledger-session-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** Says on SIGTERM what it does and, once it can, its pid. */
const POLITE = `setInterval(() => {}, 1e6);
  process.on('SIGTERM', () => { console.log('stopping'); setTimeout(() => process.exit(0), 50); });
  process.on('SIGINT', () => console.log('SIGINT'));
  console.log('pid ' + process.pid);`;
const STUBBORN = `setInterval(() => {}, 1e6);
  process.on('SIGTERM', () => console.log('stopping'));
  console.log('pid ' + process.pid);`;
const CRASHING = `console.log('pid ' + process.pid); process.exit(3);`;

/** A session in a process group of its own, as a terminal would give it. */
function sessionIn(dir: string, script: string) {
  const owner: ChildProcess & { stdout: NodeJS.ReadableStream } = spawn(
    process.execPath,
    ['--import', 'tsx', OWNER, dir, script],
    { stdio: ['ignore', 'pipe', 'inherit'], detached: true },
  );
  onTestFinished(() => void owner.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface({ input: owner.stdout }).on('line', (line) => lines.push(line));
  const closed = once(owner, 'close');
  return {
    lines,
    kill: (signal: NodeJS.Signals) => owner.kill(signal),
    pressCtrlC: () => process.kill(-(owner.pid ?? 0), 'SIGINT'),
    exitCode: async (): Promise<number | null> => (await closed)[0],
    stubPids: () =>
      eventually(() => {
        const pids = lines.flatMap((line) => /pid (\d+)$/.exec(line)?.[1] ?? []).map(Number);
        return pids.length >= 2 && pids;
      }),
  };
}

const allGone = (pids: readonly number[]): Promise<true> =>
  eventually(async () => {
    const found = await Promise.all(pids.map((pid) => describeProcess(pid)));
    return found.every((process) => process === undefined);
  });

test('Ctrl+C reaches the session alone, which stops its processes in the reverse order and ends well', async () => {
  const session = sessionIn(await scratchDir(), POLITE);
  const pids = await session.stubPids();
  session.pressCtrlC();
  expect(await session.exitCode()).toBe(0);
  await allGone(pids);
  expect(session.lines.filter((line) => /stopping|SIGINT/.test(line))).toEqual([
    'second │ stopping',
    'first │ stopping',
  ]);
});

test('a second Ctrl+C kills what does not stop', async () => {
  const session = sessionIn(await scratchDir(), STUBBORN);
  const pids = await session.stubPids();
  session.pressCtrlC();
  await eventually(() => session.lines.includes('second │ stopping'));
  session.pressCtrlC();
  expect(await session.exitCode()).toBe(130);
  await allGone(pids);
});

test('a session that is killed leaves no process behind', async () => {
  const session = sessionIn(await scratchDir(), POLITE);
  const pids = await session.stubPids();
  session.kill('SIGKILL');
  await allGone(pids);
});

test('a process that keeps ending by itself ends the session as a failure', async () => {
  const session = sessionIn(await scratchDir(), CRASHING);
  expect(await session.exitCode()).toBe(1);
  expect(session.lines.join('\n')).toMatch(/ended 3 times \(last with code 3\)/);
});

test('a second session in the same folder is refused while the first runs, and not after it was killed', async () => {
  const dir = await scratchDir();
  const first = sessionIn(dir, POLITE);
  await first.stubPids();
  const second = sessionIn(dir, POLITE);
  expect(await second.exitCode()).toBe(1);
  expect(second.lines.join('\n')).toMatch(/already runs here, as process \d+/);
  first.kill('SIGKILL');
  await first.exitCode();
  const third = sessionIn(dir, POLITE);
  await third.stubPids();
  third.pressCtrlC();
  expect(await third.exitCode()).toBe(0);
});

test('ports stay the same from session to session, and a pinned port that is no port is refused by name', async () => {
  const file = join(await scratchDir(), 'ports.json');
  const print = (): void => {};
  const wish = { what: 'NATS', env: 'NATS_PORT', usual: 1 };
  const any = await openPortBook({ file, env: { NATS_PORT: '0' }, print });
  const free = await any.choose(wish);
  const first = await openPortBook({ file, env: {}, print });
  expect(await first.choose({ ...wish, usual: free })).toBe(free);
  const second = await openPortBook({ file, env: {}, print });
  expect(await second.choose({ ...wish, usual: free + 1 })).toBe(free);
  const pinned = await openPortBook({ file, env: { NATS_PORT: 'abc' }, print });
  await expect(pinned.choose(wish)).rejects.toMatchObject({
    code: 'config_invalid',
    details: { key: 'NATS_PORT' },
  });
});
