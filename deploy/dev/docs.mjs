import { installDependencies, requireNode, runSource } from './install.mjs';

// `npm run docs`: rewrites the parts of the READMEs that are made from the configuration's schema, the routes and the signals.

requireNode();
installDependencies();
process.exitCode = await runSource('deploy', 'dev', 'docs.ts');
