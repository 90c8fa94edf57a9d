import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { spawnWatchdog } from '../../src/platform/embedded/watchdog.ts';
import { programArgs } from './built.ts';
import { eventually } from './eventually.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** A process of the project with its log. */
export interface NodeProcess {
  readonly pid: number;
  /** Everything it has printed, line by line. */
  readonly lines: readonly string[];
  /** The entry of its log with this message, once there is one. */
  logged(message: string, timeoutMs?: number): Promise<Readonly<Record<string, unknown>>>;
  /** Resolves with its exit code, null when a signal ended it. */
  readonly ended: Promise<number | null>;
  /** Sends the signal unless it has ended, and waits for its end. */
  stop(signal?: NodeJS.Signals): Promise<number | null>;
}

/** Runs a source file. It is killed should the test run die before stopping it. */
export function startNodeProcess(
  file: string,
  args: readonly string[],
  env: Readonly<Record<string, string>>,
): NodeProcess {
  const watchdog = spawnWatchdog('SIGKILL');
  const child = spawn(process.execPath, [...programArgs(file), ...args], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'], ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const { pid } = child;
  if (pid === undefined) throw new Error(`${file} could not be started`);
  watchdog.watch(pid);
  const lines: string[] = [];
  for (const output of [child.stdout, child.stderr])
    createInterface({ input: output }).on('line', (line) => lines.push(line));
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      watchdog.release();
      resolve(code);
    });
  });
  return {
    pid,
    lines,
    ended,
    logged: (message, timeoutMs = 60_000) =>
      eventually(
        () => {
          const entry = lines.map(parseEntry).find((each) => each?.['msg'] === message);
          if (entry !== undefined) return entry;
          if (child.exitCode !== null) throw new Error(`${file} ended:\n${lines.slice(-10).join('\n')}`);
          return false;
        },
        { timeoutMs },
      ),
    async stop(signal = 'SIGTERM') {
      if (child.exitCode === null && child.signalCode === null) child.kill(signal);
      return ended;
    },
  };
}

function parseEntry(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line) as Record<string, unknown>;
  } catch {
    return undefined;
  }
}
