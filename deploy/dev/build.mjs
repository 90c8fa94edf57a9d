import { cpSync, readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { installDependencies, programOf, ROOT, requireNode, run } from './install.mjs';

// `npm run build`: plain JavaScript in dist/, beside the migrations that it runs.

requireNode();
installDependencies();

process.exitCode = await build();

async function build() {
  const dist = join(ROOT, 'dist');
  rmSync(dist, { recursive: true, force: true });
  const code = await run(programOf('tsc'), ['--project', 'tsconfig.build.json']);
  if (code !== 0) return code;
  const migrations = join(ROOT, 'migrations');
  for (const file of readdirSync(migrations)) {
    if (file.endsWith('.sql')) cpSync(join(migrations, file), join(dist, 'migrations', file));
  }
  console.log('Built dist/. Start it with: node dist/src/main.js all');
  return 0;
}
