import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { access, chown, mkdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { TaskledgerError } from '../../domain/errors.ts';
import type { PostgresPlace } from './postgres-place.ts';
import { describeProcess } from './process-info.ts';

const run = promisify(execFile);

const INITDB_TIMEOUT_MS = 120_000;

/** The superuser of every embedded Postgres. */
export const POSTGRES_USER = 'taskledger';

/** Nothing of ours leaks into the programs; on macOS Postgres refuses to start without a locale. */
export const PROGRAM_ENV = { LC_ALL: 'C', TZ: 'UTC' } as const;

export interface PostgresData {
  readonly dir: string;
  /** The superuser's; it lies beside the data, readable by the server's user alone. */
  readonly password: string;
}

/** Makes the data folder when there is none, and one that a killed server left usable again. */
export async function prepareData(place: PostgresPlace): Promise<PostgresData> {
  const dir = join(place.dir, 'data');
  await removeStalePidFile(dir);
  return { dir, password: await initialise(place, dir) };
}

/** Answers the superuser's password. */
async function initialise(place: PostgresPlace, dataDir: string): Promise<string> {
  const passwordFile = join(place.dir, 'password');
  if (await exists(join(dataDir, 'PG_VERSION'))) {
    if (await exists(passwordFile)) return (await readFile(passwordFile, 'utf8')).trim();
    throw new Error(`${dataDir} exists, but ${passwordFile} is missing`);
  }
  // Without PG_VERSION an earlier initdb did not get to its end.
  await rm(dataDir, { recursive: true, force: true });
  const password = randomBytes(18).toString('base64url');
  await rm(passwordFile, { force: true });
  await writeFile(passwordFile, `${password}\n`, { mode: 0o600 });
  await mkdir(dataDir, { mode: 0o700 });
  if (place.user !== undefined) {
    await chown(dataDir, place.user.uid, place.user.gid);
    await chown(passwordFile, place.user.uid, place.user.gid);
  }
  const args = [
    `--pgdata=${dataDir}`,
    `--username=${POSTGRES_USER}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // The same sorting on every platform, whatever locales it has.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-sync',
  ];
  await run(place.programs.initdb, args, {
    ...place.user,
    cwd: '/',
    env: PROGRAM_ENV,
    timeout: INITDB_TIMEOUT_MS,
  });
  return password;
}

/** Lets in whoever knows the password from any address, not only from the loopback interface. */
export async function admitNeighbours({ dir }: PostgresData): Promise<void> {
  const file = join(dir, 'pg_hba.conf');
  const line = 'host all all all scram-sha-256';
  const text = await readFile(file, 'utf8');
  if (!text.split('\n').includes(line)) await writeFile(file, `${text}${line}\n`);
}

/**
 * Postgres itself overlooks a pid file whose process is dead, but not one whose pid now belongs to another program,
 * which is the rule after a container was killed.
 */
async function removeStalePidFile(dataDir: string): Promise<void> {
  const file = join(dataDir, 'postmaster.pid');
  const text = await readFile(file, 'utf8').catch(() => '');
  const pid = Number(text.split('\n')[0]);
  if (!(pid > 0)) return;
  const holder = await describeProcess(pid);
  if (holder === undefined) return;
  if (holder.command.includes(dataDir)) {
    throw new TaskledgerError('server_in_use', { dir: dataDir, server: 'postgres', pid, ownerPid: pid });
  }
  await rm(file, { force: true });
}

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );
