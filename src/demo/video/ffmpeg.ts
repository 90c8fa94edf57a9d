import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import { NotRetryable } from '../../index.ts';

export interface RunOptions {
  /** Ends the program at once. */
  readonly signal?: AbortSignal;
  /** Called with every line of its standard output. */
  readonly onLine?: (line: string) => void;
}

/** Words with which ffmpeg says that the input is at fault, so that another attempt would fail alike. */
const BAD_INPUT = /invalid data found|moov atom not found|no such file|does not contain any stream/i;
const KEPT_ERROR_LINES = 200;

/**
 * Runs ffmpeg or ffprobe, with arguments grouped as one likes, and gives what it wrote to standard error, where ffmpeg's filters report.
 * Throws NotRetryable (`bad_clip`) when the input is at fault, and an Error with its last words otherwise.
 */
export async function run(
  program: 'ffmpeg' | 'ffprobe',
  args: readonly (string | readonly string[])[],
  { signal, onLine }: RunOptions = {},
): Promise<readonly string[]> {
  signal?.throwIfAborted();
  const child = spawn(program, ['-hide_banner', ...args.flat()], { stdio: ['ignore', 'pipe', 'pipe'] });
  const kill = (): void => void child.kill('SIGKILL');
  signal?.addEventListener('abort', kill, { once: true });
  const said: string[] = [];
  createInterface({ input: child.stderr }).on('line', (line) => {
    said.push(line);
    if (said.length > KEPT_ERROR_LINES) said.shift();
  });
  createInterface({ input: child.stdout }).on('line', (line) => onLine?.(line));
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('close', resolve);
    });
    signal?.throwIfAborted();
    if (code === 0) return said;
  } finally {
    signal?.removeEventListener('abort', kill);
  }
  const atFault = said.find((line) => BAD_INPUT.test(line));
  if (atFault !== undefined) throw new NotRetryable(withoutOrigin(atFault), { code: 'bad_clip' });
  throw new Error(`${program} failed: ${said.slice(-3).map(withoutOrigin).join(' | ')}`);
}

/** `[mp4 @ 0x55b7] moov atom not found` without the address, so that equal errors read alike. */
const withoutOrigin = (line: string): string => line.replace(/^\[[^\]]+\] /, '');

/** Whether ffmpeg and ffprobe are on PATH, with the encoder that the pipeline uses. */
export async function ffmpegIsUsable(): Promise<boolean> {
  let hasEncoder = false;
  try {
    await run('ffmpeg', ['-loglevel', 'error', '-encoders'], {
      onLine: (line) => {
        hasEncoder ||= /\blibx264\b/.test(line);
      },
    });
    await run('ffprobe', ['-version']);
    return hasEncoder;
  } catch {
    return false;
  }
}
