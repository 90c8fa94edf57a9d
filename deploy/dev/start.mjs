import { installDependencies, requireNode } from './install.mjs';

// `npm start`: everything from a fresh clone to a running system. `--watch` restarts it when sources change.

requireNode();
installDependencies();
const { register } = await import('tsx/esm/api');
register();
await import('./dev.ts');
