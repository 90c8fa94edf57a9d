import { join } from 'node:path';
import { launchServer } from '../../src/platform/embedded/child-server.ts';
import { eventually } from '../support/eventually.ts';
import { productMain } from './built.ts';

/** A dispatcher in a process of its own, and what it says of itself. */
export interface DispatcherProcess {
  readonly pid: number;
  /** The first entry of its log with the message, and when that was (ms since 1970); waits for it. */
  said(message: string): Promise<Said>;
  /** Ends it by SIGTERM, and does not wait for the end. */
  dismiss(): void;
  kill(): Promise<void>;
}

export interface Said {
  readonly at: number;
  readonly fields: Readonly<Record<string, unknown>>;
}

const SAID_WITHIN_MS = 180_000;
let started = 0;

export async function startDispatcher(
  dir: string,
  env: Readonly<Record<string, string>>,
): Promise<DispatcherProcess> {
  started += 1;
  const own = join(dir, `dispatcher-${started}`);
  const child = await launchServer({
    name: 'dispatcher',
    bin: process.execPath,
    args: [productMain, 'dispatcher'],
    dir: own,
    logFile: join(own, 'log'),
    env: { PATH: process.env['PATH'] ?? '', TASKLEDGER_LOG_LEVEL: 'info', ...env },
    stopSignal: 'SIGTERM',
    stopTimeoutMs: 20_000,
  });
  return {
    pid: child.pid,
    said: (message) =>
      eventually(
        async (): Promise<Said | false> => {
          const line = (await child.output()).split('\n').find((each) => each.includes(`"msg":"${message}"`));
          if (line === undefined) return false;
          const fields = JSON.parse(line) as Record<string, unknown>;
          return { at: Date.parse(String(fields['time'])), fields };
        },
        { timeoutMs: SAID_WITHIN_MS, intervalMs: 50 },
      ),
    dismiss: () => void child.kill('SIGTERM'),
    kill: () => child.kill('SIGKILL'),
  };
}
