import { execFile } from 'node:child_process';
import { access, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { install } from './nats-installed.ts';
import type { NatsSource } from './nats-source.ts';

const run = promisify(execFile);

/** The first Debian suite with a nats-server that is new enough. */
const SUITE = 'forky';
const DEFAULT_MIRROR = 'http://deb.debian.org/debian';
const KEYRINGS = [
  '/usr/share/keyrings/debian-archive-keyring.gpg',
  '/usr/share/keyrings/debian-archive-keyring.pgp',
];
/** The suite's package index is about 10 MB. */
const UPDATE_TIMEOUT_MS = 120_000;
/** For one connection; a network that refuses must fail in seconds. */
const CONNECT_TIMEOUT_S = 8;

/**
 * The package of a newer Debian suite, unpacked without installing it. Lists, cache and sources of apt are private to
 * a scratch folder, so the system's own state stays as it is and no privilege is needed.
 */
export const fromDebian = ({
  dir,
  log,
}: {
  readonly dir: string;
  readonly log: (line: string) => void;
}): NatsSource => ({
  name: 'Debian package',
  find: async () => {
    const keyring = await firstReadable(KEYRINGS);
    if (keyring === undefined) return { declined: 'no Debian archive keyring on this machine' };
    const mirrors = new Set([await ownMirror(), DEFAULT_MIRROR]);
    const declined: string[] = [];
    for (const mirror of mirrors) {
      log(`Fetching nats-server from Debian ${SUITE} at ${mirror}`);
      const found = await install(dir, (scratch) => fetchPackage({ scratch, mirror, keyring }));
      if ('bin' in found) return found;
      declined.push(`${mirror}: ${found.declined}`);
    }
    return { declined: declined.join(', ') };
  },
});

interface PackageOrder {
  readonly scratch: string;
  readonly mirror: string;
  readonly keyring: string;
}

async function fetchPackage({ scratch, mirror, keyring }: PackageOrder): Promise<string> {
  const sourceList = join(scratch, 'sources.list');
  await mkdir(join(scratch, 'lists', 'partial'), { recursive: true });
  await mkdir(join(scratch, 'archives', 'partial'), { recursive: true });
  await writeFile(sourceList, `deb [signed-by=${keyring}] ${mirror} ${SUITE} main\n`);
  const settings = [
    `Dir::Etc::sourcelist=${sourceList}`,
    'Dir::Etc::sourceparts=-',
    `Dir::State::Lists=${join(scratch, 'lists')}`,
    `Dir::Cache=${scratch}`,
    `Dir::Cache::archives=${join(scratch, 'archives')}`,
    // As root, apt would fetch as a user who may not enter this folder.
    'APT::Sandbox::User=root',
    'APT::Update::Error-Mode=any',
    'Acquire::Languages=none',
    'Acquire::Retries=0',
    `Acquire::http::Timeout=${CONNECT_TIMEOUT_S}`,
    `Acquire::https::Timeout=${CONNECT_TIMEOUT_S}`,
  ].flatMap((setting) => ['-o', setting]);
  const apt = (...args: string[]): Promise<unknown> =>
    run('apt-get', [...settings, '-qq', ...args], { cwd: scratch, timeout: UPDATE_TIMEOUT_MS });

  await apt('update');
  await apt('download', 'nats-server');
  const archive = (await readdir(scratch)).find((file) => file.endsWith('.deb'));
  if (archive === undefined) throw new Error(`${SUITE} has no package nats-server`);
  await run('dpkg-deb', ['-x', archive, 'package'], { cwd: scratch });
  return join(scratch, 'package', 'usr', 'sbin', 'nats-server');
}

async function ownMirror(): Promise<string> {
  const files = await readdir('/etc/apt/sources.list.d').catch(() => []);
  const paths = ['/etc/apt/sources.list', ...files.map((file) => join('/etc/apt/sources.list.d', file))];
  const texts = await Promise.all(
    paths
      .filter((path) => /\.(list|sources)$/.test(path))
      .map((path) => readFile(path, 'utf8').catch(() => '')),
  );
  return mirrorIn(texts.join('\n')) ?? DEFAULT_MIRROR;
}

/** The first Debian archive that apt sources name, in either of their two formats: a URI whose path ends in `/debian`. */
export function mirrorIn(sources: string): string | undefined {
  for (const line of sources.split('\n')) {
    if (!/^\s*(deb\s|URIs:)/.test(line)) continue;
    const uri = /https?:\/\/\S+?\/debian\/?(?=\s|$)/.exec(line)?.[0];
    if (uri !== undefined) return uri.replace(/\/$/, '');
  }
  return undefined;
}

async function firstReadable(paths: readonly string[]): Promise<string | undefined> {
  for (const path of paths) {
    const readable = await access(path).then(
      () => true,
      () => false,
    );
    if (readable) return path;
  }
  return undefined;
}
