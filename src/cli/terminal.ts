import type { Status } from '../domain/events.ts';
import type { Clock } from '../platform/clock.ts';

/** What a command may touch of the world: given in, so that a test sees all of it. */
export interface Terminal {
  out(text: string): void;
  err(text: string): void;
  /** Width for tables; Infinity when nobody looks at them (a pipe). */
  readonly columns: number;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  stdin(): Promise<string>;
  readFile(path: string): Promise<string>;
  /** Resolves after `ms`. */
  pause(ms: number): Promise<void>;
  readonly fetch: typeof fetch;
}

/** What a script can rely on. */
export const EXIT = {
  ok: 0,
  /** `--wait` or `watch`: the task ended, but not COMPLETED. */
  taskFailed: 1,
  usage: 2,
  /** The server answered and said no. */
  refused: 3,
  /** Nobody answered. */
  unreachable: 4,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Of a task that is waited for. */
export const exitOf = (status: Status): ExitCode => (status === 'COMPLETED' ? EXIT.ok : EXIT.taskFailed);

/** Does what a command is for, and keeps its exit code. */
export type Run = (action: () => Promise<ExitCode>) => Promise<void>;
