import { join } from 'node:path';
import { installDependencies, ROOT, requireNode, run, runSource } from './install.mjs';

// `npm run bench`: builds, then measures the built code. Arguments go to the bench: `npm run bench -- --only submit`.

requireNode();
installDependencies();
const code = await run(process.execPath, [join(ROOT, 'deploy', 'dev', 'build.mjs')]);
process.exitCode = code !== 0 ? code : await runSource('test', 'bench', 'main.ts');
