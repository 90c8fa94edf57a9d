import { join } from 'node:path';
import { installDependencies, ROOT, requireNode, run } from './install.mjs';

// `npm run simulate -- [--scenario NAME ...] [--scale 1]`: the dispatcher's core on a virtual clock, with figures.

requireNode();
installDependencies();
const main = join(ROOT, 'test', 'simulation', 'main.ts');
process.exitCode = await run(process.execPath, ['--import', 'tsx', main, ...process.argv.slice(2)]);
