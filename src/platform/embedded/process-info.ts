import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface ProcessInfo {
  /** The command line, arguments joined by spaces. */
  readonly command: string;
  /** When it was started, in a form of the platform's own: equal for the same process, different once a pid is used again. */
  readonly startedAt: string;
}

/** `undefined` when no such process exists, or it is a zombie. */
export async function describeProcess(pid: number): Promise<ProcessInfo | undefined> {
  try {
    process.kill(pid, 0);
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ESRCH') return undefined;
  }
  return process.platform === 'linux' ? fromProc(pid) : fromPs(pid);
}

async function fromProc(pid: number): Promise<ProcessInfo | undefined> {
  try {
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8');
    // The second field is the command in parentheses and may hold anything; the state follows it, the start time is field 22.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (fields[0] === 'Z' || fields[0] === 'X') return undefined;
    const command = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ').trim();
    return { command, startedAt: fields[19] ?? '' };
  } catch {
    return undefined;
  }
}

async function fromPs(pid: number): Promise<ProcessInfo | undefined> {
  try {
    const { stdout } = await run('ps', ['-o', 'lstart=', '-o', 'command=', '-p', String(pid)], {
      env: { LC_ALL: 'C' },
    });
    const line = stdout.trim();
    // lstart is always five words of 24 characters: "Sun Nov 29 20:15:00 2026".
    return line === '' ? undefined : { startedAt: line.slice(0, 24), command: line.slice(24).trim() };
  } catch {
    return undefined;
  }
}
