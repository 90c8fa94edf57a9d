import { existsSync, lstatSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { programOf, ROOT } from './install.mjs';

// After `npm ci` in a clone: makes `npx taskledger` find the command line. npm links the programs of dependencies only.

const modules = join(ROOT, 'node_modules');
if (existsSync(modules) && !lstatSync(modules).isSymbolicLink()) {
  mkdirSync(join(modules, '.bin'), { recursive: true });
  rmSync(programOf('taskledger'), { force: true });
  symlinkSync(join('..', '..', 'deploy', 'dev', 'taskledger.mjs'), programOf('taskledger'));
}
