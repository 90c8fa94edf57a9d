import { join } from 'node:path';
import { installDependencies, ROOT, requireNode, run } from './install.mjs';

// `npm run docs`: rewrites the parts of the README that are made from the configuration's schema and the routes.

requireNode();
installDependencies();
process.exitCode = await run(process.execPath, ['--import', 'tsx', join(ROOT, 'deploy', 'dev', 'docs.ts')]);
