import { existsSync } from 'node:fs';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { transpiled } from '../support/transpile.ts';

/**
 * Figures are those of the built product, in plain Node without a loader. So the load processes, which use the
 * product's public door, are put beside it as plain JavaScript too: their imports then resolve into dist/.
 */
const root = new URL('../../', import.meta.url);
const loadFolder = new URL('test/bench/load/', root);
const builtLoadFolder = new URL('dist/test/bench/load/', root);

export const productMain = fileURLToPath(new URL('dist/src/main.js', root));
export const builtLoad = (name: 'producer' | 'worker'): string =>
  fileURLToPath(new URL(`${name}.js`, builtLoadFolder));

/** @throws Error when the product has not been built */
export async function buildLoad(): Promise<void> {
  if (!existsSync(productMain)) throw new Error(`${productMain} is missing: run "npm run build" first`);
  await mkdir(builtLoadFolder, { recursive: true });
  const files = (await readdir(loadFolder)).filter(
    (file) => file.endsWith('.ts') && !file.includes('.test.'),
  );
  await Promise.all(
    files.map(async (file) => {
      const source = await readFile(new URL(file, loadFolder), 'utf8');
      await writeFile(new URL(file.replace(/\.ts$/, '.js'), builtLoadFolder), transpiled(source, file));
    }),
  );
}
