import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { examples } from '../support/readme.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
/** Where the public exports stand. */
const FOLDERS = ['src/worker', 'src/intake'];
const EXAMPLES = 8;

test('the examples of the public exports compile as they stand', async () => {
  // Below the project, so that they find their packages.
  await mkdir(join(ROOT, '.taskledger'), { recursive: true });
  const folder = await mkdtemp(join(ROOT, '.taskledger', 'examples-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const found = (await Promise.all(FOLDERS.map(examplesIn))).flat();
  expect(found.map(({ file }) => file)).toHaveLength(EXAMPLES);
  for (const [index, { file, code }] of found.entries())
    await writeFile(join(folder, `${index}-${file}`), code);
  await writeFile(join(folder, 'tsconfig.json'), JSON.stringify(TSCONFIG));

  const { stdout } = await promisify(execFile)(process.execPath, [
    join(ROOT, 'node_modules/typescript/bin/tsc'),
    '-p',
    folder,
  ]).catch((error: unknown) => error as { stdout: string });
  expect(stdout).toBe('');
});

const TSCONFIG = {
  extends: '../../tsconfig.json',
  compilerOptions: {
    noEmit: true,
    rootDir: '../..',
    paths: { taskledger: ['../../src/index.ts'], 'taskledger/testing': ['../../src/worker/testing.ts'] },
  },
  include: ['*.ts'],
};

async function examplesIn(folder: string): Promise<{ file: string; code: string }[]> {
  const files = (await readdir(join(ROOT, folder))).filter((name) => name.endsWith('.ts')).sort();
  const found = await Promise.all(
    files.map(async (file) => {
      const codes = examples(await readFile(join(ROOT, folder, file), 'utf8'));
      return codes.map((code) => ({ file, code }));
    }),
  );
  return found.flat();
}
