import { installDependencies, requireNode, runSource } from './install.mjs';

// `npm run chaos`: faults on a whole installation, and a verdict. Arguments go on: `npm run chaos -- --minutes 10 --seed 7`.

requireNode();
installDependencies();
process.exitCode = await runSource('test', 'chaos', 'main.ts');
