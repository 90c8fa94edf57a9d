import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type ChildServer, launchServer } from '../../../src/platform/embedded/child-server.ts';
import { programArgs } from '../../support/built.ts';
import type { Home } from '../network/network.ts';
import type { Death, Victim } from './victim.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** As a supervisor in production does, only sooner. */
const RESTART_AFTER_MS = 500;
const STOP_WITHIN_MS = 30_000;
const WORDS = 600;

export interface PartOptions {
  readonly home: Home;
  /** A source file; what was built of it is run. */
  readonly program: string;
  readonly args: readonly string[];
  readonly dir: string;
  readonly env: Readonly<Record<string, string>>;
  readonly onDeath: (death: Death) => void;
}

export interface Part extends Victim {
  readonly logFile: string;
}

/** A process of the product under a supervisor: one that ends by itself is started again. */
export function partOf({ home, program, args, dir, env, onDeath }: PartOptions): Part {
  const name = home.part;
  const logFile = join(dir, name, 'log');
  let wanted = false;
  /** Told to end, and perhaps wanted again before it has. */
  let ending: ChildServer | undefined;
  let child: ChildServer | undefined;
  let launching: Promise<void> | undefined;

  const launch = async (): Promise<void> => {
    const launched = await launchServer({
      name,
      bin: process.execPath,
      args: [...programArgs(program), ...args],
      dir: join(dir, name),
      logFile,
      cwd: ROOT,
      namespace: home.network?.namespace,
      env: { PATH: process.env['PATH'] ?? '', HOME: process.env['HOME'] ?? '', ...env },
      stopSignal: 'SIGTERM',
      stopTimeoutMs: STOP_WITHIN_MS,
    });
    child = launched;
    void launched.exited.then(async ({ code, signal }) => {
      if (child !== launched) return;
      child = undefined;
      const how = `${signal ?? `code ${code}`}`;
      if (ending === launched) onDeath({ at: Date.now(), name, by: 'nemesis', how });
      else {
        const words = (await readFile(logFile, 'utf8')).trim().slice(-WORDS);
        onDeath({ at: Date.now(), name, by: 'itself', how: `${how}: ${words}` });
      }
      if (!wanted) return;
      await delay(RESTART_AFTER_MS);
      if (wanted && child === undefined) await start();
    });
  };
  const start = async (): Promise<void> => {
    wanted = true;
    if (child !== undefined) return;
    launching ??= launch().finally(() => {
      launching = undefined;
    });
    await launching;
  };
  return {
    name,
    logFile,
    start,
    async stop() {
      wanted = false;
      await launching;
      ending = child;
      await child?.stop();
    },
    async kill() {
      wanted = false;
      await launching;
      ending = child;
      await child?.kill('SIGKILL');
    },
    pause: async () => child?.kill('SIGSTOP'),
    resume: async () => child?.kill('SIGCONT'),
  };
}
