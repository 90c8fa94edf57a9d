import { spawn, spawnSync } from 'node:child_process';
import { existsSync, lstatSync, mkdirSync, readFileSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

// Plain JavaScript for any Node: these lines run before dependencies exist and must be able to refuse an old Node.

export const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const modules = join(ROOT, 'node_modules');

/** Ends the process with a clear line when Node is older than package.json's `engines` asks for. */
export function requireNode() {
  const { engines } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const required = engines.node.replace('>=', '');
  const numbers = (version) => version.split('.').map(Number);
  const [has, needs] = [numbers(process.versions.node), numbers(required)];
  if (has[0] > needs[0] || (has[0] === needs[0] && has[1] >= (needs[1] || 0))) return;
  console.error(
    `Taskledger needs Node ${required} or newer; this is ${process.versions.node} (${process.execPath}).`,
  );
  process.exit(1);
}

/**
 * Runs `npm ci` when node_modules is missing or older than the lock file. One that is a link is somebody else's (another
 * working tree of this repository, say): `npm ci` would empty the folder behind it.
 */
export function installDependencies() {
  const installed = join(modules, '.package-lock.json');
  const lock = join(ROOT, 'package-lock.json');
  if (existsSync(installed) && lstatSync(modules).isSymbolicLink()) return;
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) {
    linkCommandLine();
    return;
  }
  console.log('Installing dependencies (npm ci) …');
  const npm = process.env.npm_execpath;
  const [command, args] = npm ? [process.execPath, [npm]] : ['npm', []];
  const { status } = spawnSync(
    command,
    [...args, 'ci', '--no-audit', '--no-fund', '--include=dev', '--include=optional'],
    {
      cwd: ROOT,
      stdio: ['ignore', 'inherit', 'inherit'],
    },
  );
  if (status === 0) return;
  console.error('npm ci failed: see above.');
  process.exit(1);
}

/** Makes `npx taskledger` find the command line in a clone: npm links the programs of dependencies only. */
export function linkCommandLine() {
  const link = programOf('taskledger');
  if (existsSync(link) || !existsSync(modules) || lstatSync(modules).isSymbolicLink()) return;
  mkdirSync(join(modules, '.bin'), { recursive: true });
  rmSync(link, { force: true });
  symlinkSync(join('..', '..', 'deploy', 'dev', 'taskledger.mjs'), link);
}

/** The path of a program that a dependency brings. */
export const programOf = (name) => join(ROOT, 'node_modules', '.bin', name);

/** Runs a TypeScript file of the project with the arguments that this process was given; resolves with its exit code. */
export const runSource = (...path) =>
  run(process.execPath, ['--import', 'tsx', join(ROOT, ...path), ...process.argv.slice(2)]);

/** Runs a program in the project's folder with our own output; resolves with its exit code. */
export function run(command, args, env = process.env) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'inherit', 'inherit'], env });
    child.on('error', (error) => {
      console.error(`${command}: ${error.message}`);
      resolve(1);
    });
    child.on('close', (code, signal) => resolve(signal ? 1 : code));
  });
}

/** Runs a program in the project's folder beside others; resolves with its exit code and all that it has said. */
export function runAside(command, args) {
  return new Promise((resolve) => {
    const child = spawn(command, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'pipe'] });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text) => {
        output += text;
      });
    child.on('error', (error) => resolve({ code: 1, output: `${command}: ${error.message}\n` }));
    child.on('close', (code, signal) => resolve({ code: signal ? 1 : code, output }));
  });
}
