import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { NatsSource } from './nats-source.ts';
import { compareVersions, isNewEnough, parseNatsVersion, REQUIRED_NATS_VERSION } from './nats-version.ts';

const run = promisify(execFile);

type Found = Awaited<ReturnType<NatsSource['find']>>;

/** The program as a find, if it runs and is new enough. */
export async function examine(bin: string): Promise<Found> {
  try {
    const { stdout } = await run(bin, ['--version'], { timeout: 10_000 });
    const version = parseNatsVersion(stdout);
    if (version === undefined) return { declined: `${bin} does not say its version` };
    if (!isNewEnough(version))
      return { declined: `${bin} is ${version}, older than ${REQUIRED_NATS_VERSION}` };
    return { bin, version };
  } catch (error) {
    return { declined: reasonOf(error) };
  }
}

export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if ('code' in error && error.code === 'ENOENT')
    return `not found (${'path' in error ? String(error.path) : error.message})`;
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  const stderr = 'stderr' in error && typeof error.stderr === 'string' ? lastError(error.stderr) : '';
  return stderr === '' ? `${error.message.split('\n')[0]}${cause}` : stderr;
}

/** Tools such as apt end with a summary; the first error line names the cause. */
function lastError(stderr: string): string {
  const lines = stderr.split('\n').filter((line) => line.trim() !== '');
  return lines.find((line) => /^(E|Err|error|curl)\b/i.test(line)) ?? lines.at(-1) ?? '';
}

export const fromExplicitBin = (bin: string): NatsSource => ({
  name: 'NATS_SERVER_BIN',
  find: () => examine(bin),
});

export const fromPath = (): NatsSource => ({ name: 'PATH', find: () => examine('nats-server') });

/** The newest of the servers downloaded before: `<dir>/<version>/nats-server`. */
export const fromCache = (dir: string): NatsSource => ({
  name: 'cache',
  find: async () => {
    const entries = await readdir(dir).catch(() => []);
    const versions = entries
      .filter((entry) => /^\d+\.\d+\.\d+/.test(entry))
      .sort(compareVersions)
      .reverse();
    let declined = 'empty';
    for (const version of versions) {
      const found = await examine(join(dir, version, 'nats-server'));
      if ('bin' in found) return found;
      declined = found.declined;
    }
    return { declined };
  },
});

/**
 * Runs `fetchInto` in a scratch folder beside the cache and moves the program it names into `<dir>/<version>` in one
 * step, so that callers in parallel see a whole server or none.
 */
export async function install(dir: string, fetchInto: (scratch: string) => Promise<string>): Promise<Found> {
  let scratch: string | undefined;
  try {
    await mkdir(dir, { recursive: true });
    scratch = await mkdtemp(join(dir, 'fetch-'));
    const bin = await fetchInto(scratch);
    await chmod(bin, 0o755);
    const found = await examine(bin);
    if ('declined' in found) return found;
    const target = join(dir, found.version);
    const staged = join(scratch, 'ready');
    await mkdir(staged);
    await rename(bin, join(staged, 'nats-server'));
    await rename(staged, target).catch(async () => {
      // Somebody else was faster: theirs is as good, unless it does not run.
      if ('bin' in (await examine(join(target, 'nats-server')))) return;
      await rm(target, { recursive: true, force: true });
      await rename(staged, target);
    });
    return { bin: join(target, 'nats-server'), version: found.version };
  } catch (error) {
    return { declined: reasonOf(error) };
  } finally {
    if (scratch !== undefined) await rm(scratch, { recursive: true, force: true });
  }
}
