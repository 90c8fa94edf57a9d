import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { spawnWatchdog } from '../../src/platform/embedded/watchdog.ts';
import { linePrefixer } from './log-lines.ts';
import type { Started } from './session.ts';

export interface ChildSpec {
  /** Put before each of its lines. */
  readonly name: string;
  /** Arguments of Node. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

export interface ChildrenOptions {
  readonly cwd: string;
  readonly specs: readonly ChildSpec[];
  readonly print: (line: string) => void;
  readonly colour: boolean;
  /** A child ended by itself too often: the others cannot go on. */
  readonly onGivenUp: (reason: string) => void;
}

export interface Children extends Started {
  readonly kill: () => void;
  /** Stops them all and starts them anew. */
  readonly restart: () => Promise<void>;
}

/** How long a child may take to finish what it holds before it is killed. */
const STOP_TIMEOUT_MS = 35_000;
/** A child that ends by itself is started again after a pause, unless it ends this often within the window. */
const MAX_CRASHES = 3;
const CRASH_WINDOW_MS = 60_000;
const RESTART_PAUSE_MS = 1_000;

/**
 * Runs Node processes of the project side by side, without an order among them. Each has a process group of its own,
 * so Ctrl+C reaches us alone and we decide when they stop; a watchdog ends them should we be killed.
 */
export function startChildren({ cwd, specs, print, colour, onGivenUp }: ChildrenOptions): Children {
  const width = Math.max(...specs.map(({ name }) => name.length));
  const children = specs.map((spec, index) =>
    superviseChild({
      cwd,
      spec,
      onGivenUp,
      print,
      format: linePrefixer({ name: spec.name, width, index, colour }),
    }),
  );
  for (const child of children) child.start();
  const stop = async (): Promise<void> => {
    await Promise.all(children.map((child) => child.stop()));
  };
  return {
    stop,
    kill: () => {
      for (const child of children) child.kill();
    },
    restart: async () => {
      await stop();
      for (const child of children) child.start();
    },
  };
}

interface Supervised {
  readonly cwd: string;
  readonly spec: ChildSpec;
  readonly print: (line: string) => void;
  readonly format: (line: string) => string;
  readonly onGivenUp: (reason: string) => void;
}

/** Modes: stopped -> running -> (ended by itself) pausing -> running ...; `stop` leads to stopped from each of them. */
function superviseChild({ cwd, spec, print, format, onGivenUp }: Supervised) {
  let child: ChildProcess | undefined;
  let pause: NodeJS.Timeout | undefined;
  let wanted = false;
  let crashes: number[] = [];

  const start = (): void => {
    wanted = true;
    const watchdog = spawnWatchdog('SIGTERM');
    const started = spawn(process.execPath, spec.args, {
      cwd,
      env: { ...spec.env },
      detached: true,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    if (started.pid !== undefined) watchdog.watch(started.pid);
    child = started;
    for (const output of [started.stdout, started.stderr]) {
      createInterface({ input: output }).on('line', (line) => print(format(line)));
    }
    started.once('close', (code, signal) => {
      watchdog.release();
      child = undefined;
      if (wanted) onCrash(signal ?? `code ${code}`);
    });
  };

  const onCrash = (how: string): void => {
    crashes = [...crashes.filter((at) => Date.now() - at < CRASH_WINDOW_MS), Date.now()];
    if (crashes.length >= MAX_CRASHES) {
      onGivenUp(`${spec.name} ended ${crashes.length} times (last with ${how}): see its lines above`);
      return;
    }
    print(format(`ended with ${how}; starting it again`));
    pause = setTimeout(start, RESTART_PAUSE_MS);
  };

  const stop = async (): Promise<void> => {
    wanted = false;
    crashes = [];
    clearTimeout(pause);
    const running = child;
    if (running === undefined) return;
    const closed = new Promise((resolve) => running.once('close', resolve));
    running.kill('SIGTERM');
    const timer = setTimeout(() => {
      print(format(`did not stop in ${STOP_TIMEOUT_MS / 1000} s; killing it`));
      running.kill('SIGKILL');
    }, STOP_TIMEOUT_MS);
    await closed;
    clearTimeout(timer);
  };

  const kill = (): void => {
    wanted = false;
    clearTimeout(pause);
    child?.kill('SIGKILL');
  };
  return { start, stop, kill };
}
