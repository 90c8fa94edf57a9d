import { type ChildProcess, spawn } from 'node:child_process';
import { closeSync, fstatSync, openSync } from 'node:fs';
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { TaskledgerError } from '../../domain/errors.ts';
import { describeProcess } from './process-info.ts';
import { spawnWatchdog } from './watchdog.ts';

/**
 * A server started as a child. It gets a session of its own, so Ctrl+C in a terminal reaches the owner alone and
 * the owner decides the order of stopping. Should the owner die without stopping it (SIGKILL, a crash), a watchdog
 * stops the server in its place.
 */
export interface ChildServer {
  readonly pid: number;
  readonly logFile: string;
  /** What this process has written so far, without the runs before it. */
  readonly output: () => Promise<string>;
  /** Settles when the process has ended, for whatever reason. */
  readonly exited: Promise<Exit>;
  /** Asks it to stop, kills it after the grace time, and waits until it is gone. Twice is fine. */
  readonly stop: () => Promise<void>;
  /** Sends a signal (SIGKILL unless named) and, when the signal ends processes, waits until it is gone. */
  readonly kill: (signal?: NodeJS.Signals) => Promise<void>;
}

export interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ChildServerOptions {
  /** For messages: "nats-server", "postgres". */
  readonly name: string;
  readonly bin: string;
  readonly args: readonly string[];
  /** Where the record of who owns the server is kept; one server a folder. */
  readonly dir: string;
  readonly logFile: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
  /** The network namespace that it lives in, as `ip netns` names it. Linux, as root. */
  readonly namespace?: string | undefined;
  /** The signal for an orderly stop. */
  readonly stopSignal: NodeJS.Signals;
  /** How long an orderly stop may take before SIGKILL, in ms. */
  readonly stopTimeoutMs?: number;
}

interface OwnerRecord {
  readonly pid: number;
  readonly startedAt: string;
  readonly ownerPid: number;
  readonly ownerStartedAt: string;
}

const recordFile = (dir: string): string => join(dir, 'server.json');

/** @throws TaskledgerError `server_start_failed` when the program cannot be started at all */
export async function launchServer(options: ChildServerOptions): Promise<ChildServer> {
  const { name, dir, logFile, stopSignal, stopTimeoutMs = 10_000 } = options;
  await mkdir(dirname(logFile), { recursive: true });
  const watchdog = spawnWatchdog(stopSignal);
  const log = openSync(logFile, 'a');
  const logStart = fstatSync(log).size;
  const { bin, args, user } = commandOf(options);
  const child = spawn(bin, args, {
    detached: true,
    stdio: ['ignore', log, log],
    cwd: options.cwd ?? '/',
    ...(options.env && { env: options.env }),
    ...user,
  });
  closeSync(log);
  const { pid } = child;
  if (pid === undefined) {
    watchdog.release();
    const reason = await new Promise<string>((resolve) =>
      child.once('error', (error) => resolve(error.message)),
    );
    throw new TaskledgerError('server_start_failed', { server: name, reason, logFile });
  }
  watchdog.watch(pid);
  const exited = whenExited(child).finally(() => watchdog.release());
  await writeRecord(dir, pid);

  const kill = async (signal: NodeJS.Signals = 'SIGKILL'): Promise<void> => {
    if (!sendSignal(pid, child, signal)) return;
    if (signal === 'SIGKILL' || signal === 'SIGTERM' || signal === 'SIGINT') await exited;
  };
  let stopping: Promise<void> | undefined;
  const stopOnce = async (): Promise<void> => {
    if (sendSignal(pid, child, stopSignal)) {
      // A stopped (SIGSTOP) process would never see the request.
      sendSignal(pid, child, 'SIGCONT');
      const timer = setTimeout(() => sendSignal(pid, child, 'SIGKILL'), stopTimeoutMs);
      await exited;
      clearTimeout(timer);
    }
    await rm(recordFile(dir), { force: true });
  };
  const output = async (): Promise<string> =>
    (await readFile(logFile)).subarray(logStart).toString('utf8').trim();
  return { pid, logFile, output, exited, kill, stop: () => (stopping ??= stopOnce()) };
}

/**
 * `nsenter` becomes the program, so pid and signals are the program's. It takes root to enter, so whoever is to run as
 * somebody else becomes so inside.
 */
function commandOf({
  bin,
  args,
  user,
  namespace,
}: ChildServerOptions): Pick<ChildServerOptions, 'bin' | 'args' | 'user'> {
  if (namespace === undefined) return { bin, args, user };
  const become = user === undefined ? [] : [`--setuid=${user.uid}`, `--setgid=${user.gid}`];
  return { bin: 'nsenter', args: [`--net=/run/netns/${namespace}`, ...become, '--', bin, ...args] };
}

function whenExited(child: ChildProcess): Promise<Exit> {
  return new Promise((resolve) => child.once('exit', (code, signal) => resolve({ code, signal })));
}

/** `false` when the child has already ended, so that a signal can never reach a stranger under the same pid. */
function sendSignal(pid: number, child: ChildProcess, signal: NodeJS.Signals): boolean {
  if (child.exitCode !== null || child.signalCode !== null) return false;
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

async function writeRecord(dir: string, pid: number): Promise<void> {
  const [server, owner] = await Promise.all([describeProcess(pid), describeProcess(process.pid)]);
  if (server === undefined) return;
  const record: OwnerRecord = {
    pid,
    startedAt: server.startedAt,
    ownerPid: process.pid,
    ownerStartedAt: owner?.startedAt ?? '',
  };
  await writeFile(recordFile(dir), JSON.stringify(record));
}

export interface Reclaim {
  readonly name: string;
  readonly dir: string;
  readonly stopSignal: NodeJS.Signals;
  readonly log: (line: string) => void;
}

/**
 * Makes sure that no server from an earlier run still uses `dir`: one whose owner is dead is stopped.
 * @throws TaskledgerError `server_in_use` when its owner is alive
 */
export async function reclaimFolder({ name, dir, stopSignal, log }: Reclaim): Promise<void> {
  const record = await readRecord(dir);
  if (record === undefined) return;
  const server = await describeProcess(record.pid);
  if (server?.startedAt === record.startedAt) {
    const owner = await describeProcess(record.ownerPid);
    if (owner?.startedAt === record.ownerStartedAt) {
      throw new TaskledgerError('server_in_use', {
        dir,
        server: name,
        pid: record.pid,
        ownerPid: record.ownerPid,
      });
    }
    log(`Stopping ${name} (pid ${record.pid}) left over from an earlier run.`);
    await stopStranger(record, stopSignal);
  }
  await rm(recordFile(dir), { force: true });
}

async function readRecord(dir: string): Promise<OwnerRecord | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(recordFile(dir), 'utf8'));
    return isOwnerRecord(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const isOwnerRecord = (value: unknown): value is OwnerRecord =>
  typeof value === 'object' &&
  value !== null &&
  'pid' in value &&
  typeof value.pid === 'number' &&
  'startedAt' in value &&
  typeof value.startedAt === 'string' &&
  'ownerPid' in value &&
  typeof value.ownerPid === 'number' &&
  'ownerStartedAt' in value &&
  typeof value.ownerStartedAt === 'string';

async function stopStranger({ pid, startedAt }: OwnerRecord, stopSignal: NodeJS.Signals): Promise<void> {
  const isThere = async (): Promise<boolean> => (await describeProcess(pid))?.startedAt === startedAt;
  for (const [signal, waitMs] of [
    [stopSignal, 10_000],
    ['SIGKILL', 5_000],
  ] as const) {
    process.kill(pid, signal);
    for (const deadline = Date.now() + waitMs; Date.now() < deadline; await delay(50)) {
      if (!(await isThere())) return;
    }
  }
}
