import { join } from 'node:path';
import { installDependencies, ROOT, requireNode, run } from './install.mjs';

// `npm run chaos`: faults on a whole installation, and a verdict. Arguments go on: `npm run chaos -- --minutes 10 --seed 7`.

requireNode();
installDependencies();
process.exitCode = await run(process.execPath, [
  '--import',
  'tsx',
  join(ROOT, 'test', 'chaos', 'main.ts'),
  ...process.argv.slice(2),
]);
