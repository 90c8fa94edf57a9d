import { mkdir, open, readFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { describeProcess } from '../../src/platform/embedded/process-info.ts';

/** Something that was started and must be ended: orderly, or at once. */
export interface Started {
  readonly stop: () => Promise<void>;
  readonly kill?: () => void;
}

export interface Session {
  /** Aborts when somebody asks to stop: what is being started should give up. */
  readonly signal: AbortSignal;
  /** Starts one part. It is stopped before all parts that were started earlier. */
  readonly start: <T extends Started>(part: () => Promise<T>) => Promise<T>;
  /** Ends the session as a failure, with a line that says why. */
  readonly fail: (reason: string) => void;
}

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Runs `begin`, then waits for Ctrl+C (SIGTERM, a closed terminal, a failure) and stops every part in the reverse order
 * of starting. A second Ctrl+C kills them all. Resolves with the exit code once nothing is left.
 *
 * Modes: beginning -> running -> stopping -> over; any failure or signal leads to stopping.
 */
export async function runSession(
  begin: (session: Session) => Promise<void>,
  print: (line: string) => void,
): Promise<number> {
  const stack: Started[] = [];
  const asked = new AbortController();
  let exitCode = 0;

  const endBecause = (reason: string, code: number): void => {
    if (asked.signal.aborted) return;
    exitCode = code;
    print(reason);
    asked.abort();
  };
  const onSignal = (): void => {
    if (!asked.signal.aborted) {
      endBecause('Stopping (Ctrl+C again kills) …', 0);
      return;
    }
    print('Killing everything.');
    for (const part of stack) part.kill?.();
    process.exit(130);
  };
  for (const name of SIGNALS) process.on(name, onSignal);

  const session: Session = {
    signal: asked.signal,
    start: async (part) => {
      asked.signal.throwIfAborted();
      const started = await part();
      stack.push(started);
      asked.signal.throwIfAborted();
      return started;
    },
    fail: (reason) => endBecause(reason, 1),
  };
  try {
    await begin(session);
    await new Promise<void>((resolve) => {
      if (asked.signal.aborted) resolve();
      asked.signal.addEventListener('abort', () => resolve());
    });
  } catch (error) {
    if (!asked.signal.aborted) endBecause(explain(error), 1);
  }
  for (let part = stack.at(-1); part !== undefined; part = stack.at(-1)) {
    await part.stop().catch((error: unknown) => print(explain(error)));
    stack.pop();
  }
  for (const name of SIGNALS) process.off(name, onSignal);
  return exitCode;
}

/** What is wrong and, for an error of the catalogue, what to do about it. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (error instanceof AlreadyRunning) return error.message;
  if ('code' in error && 'fix' in error) return `${error.message}\n→ ${String(error.fix)}`;
  return error.stack ?? error.message;
}

/**
 * Makes sure that one session at a time uses the data folder.
 * @throws Error naming the process that holds it
 */
export async function lockFolder(lockFile: string): Promise<Started> {
  await mkdir(dirname(lockFile), { recursive: true });
  const self = await describeProcess(process.pid);
  const content = JSON.stringify({ pid: process.pid, startedAt: self?.startedAt });
  while (!(await createFile(lockFile, content))) {
    const holder = await holderOf(lockFile);
    if (holder !== undefined) throw new AlreadyRunning(holder);
    await rm(lockFile, { force: true });
  }
  return { stop: () => rm(lockFile, { force: true }) };
}

/** A session is running in this folder already. */
export class AlreadyRunning extends Error {
  readonly pid: number;
  constructor(pid: number) {
    super(
      `Taskledger already runs here, as process ${pid}. Stop it with Ctrl+C in its terminal or: kill ${pid}`,
    );
    this.pid = pid;
  }
}

async function createFile(path: string, content: string): Promise<boolean> {
  try {
    const file = await open(path, 'wx');
    await file.writeFile(content);
    await file.close();
    return true;
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EEXIST') return false;
    throw error;
  }
}

/** The living process that wrote the lock, if there is one. */
async function holderOf(lockFile: string): Promise<number | undefined> {
  try {
    const { pid, startedAt }: { pid: number; startedAt: string } = JSON.parse(
      await readFile(lockFile, 'utf8'),
    );
    return (await describeProcess(pid))?.startedAt === startedAt ? pid : undefined;
  } catch {
    return undefined;
  }
}
