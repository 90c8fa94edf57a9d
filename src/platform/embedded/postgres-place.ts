import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { access, lstat, mkdir, readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { copyPrograms, type PostgresPrograms } from './postgres-binary.ts';

const run = promisify(execFile);

export interface ServerUser {
  readonly uid: number;
  readonly gid: number;
}

export interface PostgresPlace {
  /** Whom the server must run as; `undefined`: as we are. */
  readonly user: ServerUser | undefined;
  readonly programs: PostgresPrograms;
  /** Where the data really is: the folder asked for, or a stand-in that the server's user can reach. */
  readonly dir: string;
}

/** Existing users without privileges, the best first. Each must be in the password file: initdb looks its own name up. */
const UNPRIVILEGED = ['nobody', 'postgres', 'daemon'];

/**
 * Postgres refuses to run as root, so root lends it an unprivileged user. That user must be able to enter the data
 * folder and the programs' folder; when a project lies where nobody else may enter (/root), both get stand-ins in
 * the system's folder for temporary files, named after the path they stand for.
 */
export async function placePostgres(options: {
  readonly dir: string;
  readonly programs: PostgresPrograms;
  readonly log: (line: string) => void;
}): Promise<PostgresPlace> {
  const { programs, log } = options;
  const dir = resolve(options.dir);
  await mkdir(dir, { recursive: true });
  if (process.getuid?.() !== 0) return { user: undefined, programs, dir };

  const user = await unprivilegedUser();
  const reachesDir = await canEnter(user, dir);
  const reachesPrograms = await canExecute(user, programs.postgres);
  if (reachesDir && reachesPrograms) return { user, programs, dir };

  const standIns = await standInFolder();
  const place = {
    user,
    programs: reachesPrograms ? programs : await copyPrograms(programs, standIns),
    dir: reachesDir ? dir : join(standIns, createHash('sha256').update(dir).digest('hex').slice(0, 16)),
  };
  await mkdir(place.dir, { recursive: true });
  if (!reachesDir)
    log(`Postgres runs as user ${user.uid}, who cannot enter ${dir}; its data is in ${place.dir}.`);
  return place;
}

async function unprivilegedUser(): Promise<ServerUser> {
  const passwd = await readFile('/etc/passwd', 'utf8');
  for (const name of UNPRIVILEGED) {
    const fields = passwd
      .split('\n')
      .map((line) => line.split(':'))
      .find(([login]) => login === name);
    const [uid, gid] = [Number(fields?.[2]), Number(fields?.[3])];
    if (uid > 0 && gid > 0) return { uid, gid };
  }
  throw new Error(`Postgres cannot run as root, and none of the users ${UNPRIVILEGED.join(', ')} exists`);
}

const canEnter = (user: ServerUser, dir: string): Promise<boolean> => succeedsAs(user, 'test -x "$1"', dir);

const canExecute = (user: ServerUser, program: string): Promise<boolean> =>
  succeedsAs(user, '"$1" --version', program);

const succeedsAs = (user: ServerUser, script: string, path: string): Promise<boolean> =>
  run('/bin/sh', ['-c', script, 'sh', path], { ...user, cwd: '/' }).then(
    () => true,
    () => false,
  );

/** Owned by us, so that no other user of the machine can slip programs or data in under a name that can be guessed. */
async function standInFolder(): Promise<string> {
  const parent = (await isFolder('/var/tmp')) ? '/var/tmp' : tmpdir();
  const folder = join(parent, `taskledger-${process.getuid?.() ?? 'user'}`);
  await mkdir(folder, { mode: 0o755 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw error;
  });
  const stat = await lstat(folder);
  if (!stat.isDirectory() || stat.uid !== process.getuid?.())
    throw new Error(`${folder} belongs to somebody else`);
  return folder;
}

const isFolder = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
