import { installDependencies, requireNode, runSource } from './install.mjs';

// `npm run simulate -- [--scenario NAME ...] [--scale 1]`: the dispatcher's core on a virtual clock, with figures.

requireNode();
installDependencies();
process.exitCode = await runSource('test', 'simulation', 'main.ts');
