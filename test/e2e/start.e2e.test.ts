import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.ts';

const run = promisify(execFile);
const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** `npm start` with data and ports of its own, in a process group as a terminal would give it. */
function start(dataDir: string) {
  const { NATS_URL: _nats, DATABASE_URL: _database, ...env } = process.env;
  const ports = { NATS_PORT: '0', NATS_MONITOR_PORT: '0', POSTGRES_PORT: '0', TASKLEDGER_HTTP_PORT: '0' };
  const session = spawn(process.execPath, ['deploy/dev/start.mjs', '--demo', 'files'], {
    cwd: ROOT,
    env: { ...env, ...ports, TASKLEDGER_DATA_DIR: dataDir },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  onTestFinished(() => void session.kill('SIGKILL'));
  let output = '';
  for (const stream of [session.stdout, session.stderr]) {
    stream.on('data', (chunk) => {
      output += chunk;
    });
  }
  let hasEnded = false;
  const closed = once(session, 'close').finally(() => {
    hasEnded = true;
  });
  return {
    output: () => output,
    greeted: async () => {
      await eventually(() => hasEnded || output.includes('Ctrl+C stops everything'), { timeoutMs: 120_000 });
      expect(output).toContain('Taskledger is running.');
      return output;
    },
    pressCtrlC: () => process.kill(-(session.pid ?? 0), 'SIGINT'),
    exitCode: async (): Promise<number | null> => (await closed)[0],
  };
}

/** The command that the greeting offers, as a person would paste it. */
function pasted(greeting: string): string {
  const command = /^ {4}(curl (?:.|\n)*?'\{.*\}')$/m.exec(greeting)?.[1];
  if (command === undefined) throw new Error(`no curl command in:\n${greeting}`);
  return command;
}

const shownIn = (greeting: string, name: string): string =>
  new RegExp(`^ {4}${name} +(\\S+)`, 'm').exec(greeting)?.[1] ?? '';

/** What the command line of the clone prints for the owner of a key that the greeting shows. */
async function commandLine(greeting: string, key: 'Key' | 'Operator', args: string[]): Promise<string> {
  const env = {
    ...process.env,
    TASKLEDGER_URL: shownIn(greeting, 'API'),
    TASKLEDGER_KEY: shownIn(greeting, key),
  };
  return (await run(process.execPath, ['deploy/dev/taskledger.mjs', ...args], { cwd: ROOT, env })).stdout;
}

async function taskAt(greeting: string, id: string): Promise<{ status: string }> {
  const response = await fetch(`${shownIn(greeting, 'API')}/v1/tasks/${id}`, {
    headers: { authorization: `Bearer ${shownIn(greeting, 'Key')}` },
  });
  const { task }: { task: { status: string } } = JSON.parse(await response.text());
  return task;
}

/** Command lines that name the session's folder, and those of the pids that its output names. */
async function leftovers(dataDir: string, output: string): Promise<string[]> {
  const pids = new Set([...output.matchAll(/\bpid=(\d+)/g)].map(([, pid]) => pid));
  const { stdout } = await run('ps', ['-eo', 'pid=,args=']);
  return stdout.split('\n').filter((line) => line.includes(dataDir) || pids.has(line.trim().split(/\s+/)[0]));
}

test('npm start runs everything: its curl command runs a task, Ctrl+C leaves no process, a second start has the data', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'taskledger-start-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  await chmod(dataDir, 0o755);

  const first = start(dataDir);
  const greeting = await first.greeted();
  const { stdout } = await run('/bin/sh', ['-c', pasted(greeting)]);
  const { id }: { id: string } = JSON.parse(stdout);
  await eventually(async () => (await taskAt(greeting, id)).status === 'COMPLETED', { timeoutMs: 60_000 });
  expect(await commandLine(greeting, 'Key', ['task', 'get', id])).toContain('COMPLETED');
  expect(await commandLine(greeting, 'Operator', ['tenant', 'list'])).toContain('demo');
  expect((await leftovers(dataDir, first.output())).length).toBeGreaterThan(3);

  const refused = start(dataDir);
  expect(await refused.exitCode()).toBe(1);
  expect(refused.output()).toMatch(/already runs here, as process \d+/);

  first.pressCtrlC();
  expect(await first.exitCode()).toBe(0);
  expect(await leftovers(dataDir, first.output())).toEqual([]);

  const second = start(dataDir);
  const again = await second.greeted();
  expect(shownIn(again, 'Key')).toBe(shownIn(greeting, 'Key'));
  expect((await taskAt(again, id)).status).toBe('COMPLETED');
  second.pressCtrlC();
  expect(await second.exitCode()).toBe(0);
  expect(await leftovers(dataDir, second.output())).toEqual([]);
});

test('a server that cannot be had ends npm start with one line that says what to do', async () => {
  const dataDir = await mkdtemp(join(tmpdir(), 'taskledger-start-'));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const { stdout } = await run(process.execPath, ['deploy/dev/start.mjs'], {
    cwd: ROOT,
    env: {
      ...process.env,
      NATS_URL: '',
      TASKLEDGER_DATA_DIR: dataDir,
      NATS_SERVER_BIN: '/nonexistent/nats-server',
    },
  }).catch((error: { stdout: string }) => error);
  expect(stdout).toMatch(
    /^No usable nats-server was found\. Tried: NATS_SERVER_BIN: not found \(\/nonexistent\/nats-server\)$/m,
  );
  expect(stdout).toMatch(/^→ Set NATS_SERVER_BIN to .* or NATS_URL/m);
});
