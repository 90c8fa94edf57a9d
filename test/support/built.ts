import { randomUUID } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, rename, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { transpiled } from './transpile.ts';

/**
 * The processes that tests start are plain JavaScript, as the product is: Node with a TypeScript loader takes a second of
 * a core to start, and half a second for each thread.
 */
const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const BUILT = join(ROOT, '.taskledger', 'built');
const FOLDERS = ['src', 'projections', 'test/support', 'test/chaos/load'];

/** Makes JavaScript of every source that has changed since it was last made. Several runs may do so at a time. */
export async function buildForTests(): Promise<void> {
  await mkdir(BUILT, { recursive: true });
  // The product looks for its migrations beside its sources.
  await symlink(join('..', '..', 'migrations'), join(BUILT, 'migrations')).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
    },
  );
  for (const folder of FOLDERS) {
    const files = await readdir(join(ROOT, folder), { recursive: true });
    await Promise.all(files.filter(isSource).map((file) => buildFile(join(folder, file))));
  }
}

/** Arguments for Node that run a source file: what was built of it or, for one from elsewhere, itself with a loader. */
export function programArgs(file: string): string[] {
  const path = resolve(ROOT, file);
  const built = builtOf(relative(ROOT, path));
  return existsSync(built) ? [built] : ['--import', 'tsx', path];
}

const builtOf = (source: string): string => join(BUILT, source.replace(/\.ts$/, '.js'));

const isSource = (file: string): boolean =>
  file.endsWith('.ts') && !file.endsWith('.test.ts') && !file.endsWith('.d.ts');

async function buildFile(source: string): Promise<void> {
  const built = builtOf(source);
  const changedAt = await mtimeOf(join(ROOT, source));
  if ((await mtimeOf(built)) >= changedAt) return;
  await mkdir(dirname(built), { recursive: true });
  const making = `${built}.${randomUUID()}`;
  await writeFile(making, transpiled(await readFile(join(ROOT, source), 'utf8'), source));
  await rename(making, built);
}

const mtimeOf = async (file: string): Promise<number> =>
  stat(file).then(
    ({ mtimeMs }) => mtimeMs,
    () => 0,
  );
