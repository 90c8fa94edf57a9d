import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';
import { findNatsServer } from './nats-binary.ts';
import { mirrorIn } from './nats-debian.ts';
import { examine, fromCache, install } from './nats-installed.ts';
import { checksumOf, fromRelease } from './nats-release.ts';
import type { NatsSource } from './nats-source.ts';
import { compareVersions, isNewEnough, parseNatsVersion } from './nats-version.ts';

const run = promisify(execFile);
const log = (): void => {};

async function scratchDir(): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'nats-binary-'));
  onTestFinished(() => rm(dir, { recursive: true, force: true }));
  return dir;
}

/** A program that answers `--version` like a nats-server. */
async function fakeServer(path: string, version: string): Promise<string> {
  await writeFile(path, `#!/bin/sh\necho "nats-server: v${version}"\n`);
  await chmod(path, 0o755);
  return path;
}

const source = (
  name: NatsSource['name'],
  answer: Awaited<ReturnType<NatsSource['find']>>,
  asked: string[] = [],
): NatsSource => ({
  name,
  find: async () => {
    asked.push(name);
    return answer;
  },
});

test.each([
  ['nats-server: v2.15.1\n', '2.15.1'],
  ['nats-server: v2.14.0-RC.2', '2.14.0-RC.2'],
  ['nats-server version 2.9.25', '2.9.25'],
  ['bash: nats-server: command not found', undefined],
])('the version in %j is %s', (output, version) => {
  expect(parseNatsVersion(output)).toBe(version);
});

test('versions are compared by number, not by text', () => {
  expect(compareVersions('2.9.0', '2.15.1')).toBeLessThan(0);
  expect(compareVersions('2.15.1', '2.15.1')).toBe(0);
  expect(['2.13.9', '2.14.0', '2.14.0-RC.1', '3.0.0'].map(isNewEnough)).toEqual([false, true, true, true]);
});

test('the first source that has a server is the last one asked', async () => {
  const asked: string[] = [];
  const found = await findNatsServer({
    cacheDir: '/nowhere',
    log,
    sources: [
      source('PATH', { declined: 'too old' }, asked),
      source('cache', { bin: '/c', version: '2.15.1' }, asked),
      source('Debian package', { bin: '/d', version: '2.15.1' }, asked),
    ],
  });
  expect(found).toEqual({ bin: '/c', version: '2.15.1', source: 'cache' });
  expect(asked).toEqual(['PATH', 'cache']);
});

test('when no source has one, the error lists each with its reason and says how to help', async () => {
  const failure = await findNatsServer({
    cacheDir: '/nowhere',
    log,
    sources: [
      source('PATH', { declined: 'not found' }),
      source('release archive', { declined: 'getaddrinfo ENOTFOUND' }),
    ],
  }).catch((error: unknown) => error);
  expect(failure).toMatchObject({
    code: 'nats_server_unavailable',
    message:
      'No usable nats-server was found. Tried: PATH: not found; release archive: getaddrinfo ENOTFOUND',
  });
  expect(failure).toHaveProperty('fix', expect.stringMatching(/NATS_SERVER_BIN.*NATS_URL/));
});

test('a server that somebody named is used or refused, never replaced by another', async () => {
  const dir = await scratchDir();
  const asked: string[] = [];
  const others = [source('PATH', { bin: '/p', version: '2.15.1' }, asked)];
  const old = await fakeServer(join(dir, 'old'), '2.10.4');
  await expect(findNatsServer({ cacheDir: dir, explicitBin: old, log, sources: others })).rejects.toThrow(
    /NATS_SERVER_BIN: .*old is 2\.10\.4, older than 2\.14\.0/,
  );
  const good = await fakeServer(join(dir, 'good'), '2.14.3');
  const found = await findNatsServer({ cacheDir: dir, explicitBin: good, log, sources: others });
  expect(found).toEqual({ bin: good, version: '2.14.3', source: 'NATS_SERVER_BIN' });
  expect(asked).toEqual([]);
});

test('a program that does not run or says no version is declined with the reason', async () => {
  const dir = await scratchDir();
  const silent = join(dir, 'silent');
  await writeFile(silent, '#!/bin/sh\n', { mode: 0o755 });
  expect(await examine(silent)).toEqual({ declined: `${silent} does not say its version` });
  expect(await examine(join(dir, 'absent'))).toEqual({ declined: `not found (${join(dir, 'absent')})` });
});

test('the cache gives the newest server that runs', async () => {
  const dir = await scratchDir();
  for (const version of ['2.9.0', '2.14.2', '2.15.1']) await mkdir(join(dir, version));
  await fakeServer(join(dir, '2.9.0', 'nats-server'), '2.9.0');
  const expected = await fakeServer(join(dir, '2.14.2', 'nats-server'), '2.14.2');
  expect(await fromCache(dir).find()).toEqual({ bin: expected, version: '2.14.2' });
});

test('callers that install at the same time all get the same whole server and leave no scratch behind', async () => {
  const dir = await scratchDir();
  const fetchInto = (scratch: string) => fakeServer(join(scratch, 'download'), '2.15.1');
  const found = await Promise.all([1, 2, 3, 4].map(() => install(dir, fetchInto)));
  for (const each of found)
    expect(each).toEqual({ bin: join(dir, '2.15.1', 'nats-server'), version: '2.15.1' });
  expect(await readdir(dir)).toEqual(['2.15.1']);
});

test('a release archive is unpacked into the cache when its checksum is right, and declined when it is not', async () => {
  const dir = await scratchDir();
  const name = 'nats-server-v2.15.1-linux-amd64';
  await mkdir(join(dir, name));
  await fakeServer(join(dir, name, 'nats-server'), '2.15.1');
  await run('tar', ['-czf', 'a.tar.gz', name], { cwd: dir });
  const archive = await readFile(join(dir, 'a.tar.gz'));
  const sumsUrl = 'https://github.com/nats-io/nats-server/releases/download/v2.15.1/SHA256SUMS';
  const release = (sum: string, cache: string) =>
    fromRelease({
      dir: join(dir, cache),
      log,
      version: '2.15.1',
      platform: 'linux',
      arch: 'x64',
      fetch: async (url) =>
        new Response(url === sumsUrl ? `${sum}  ${name}.tar.gz\n` : new Uint8Array(archive)),
    });
  const right = createHash('sha256').update(archive).digest('hex');
  expect(await release(right, 'good').find()).toMatchObject({ version: '2.15.1' });
  expect(await release('0'.repeat(64), 'bad').find()).toMatchObject({
    declined: expect.stringContaining('checksum'),
  });
});

test('a release without an archive for this machine, or out of reach, is declined', async () => {
  const dir = await scratchDir();
  const sums = fromRelease({ dir, log, arch: 'mips', fetch: async () => new Response('') });
  expect(await sums.find()).toMatchObject({ declined: expect.stringContaining('has no nats-server-v') });
  const refused = fromRelease({
    dir,
    log,
    fetch: () => Promise.reject(new TypeError('fetch failed', { cause: new Error('ENOTFOUND') })),
  });
  expect(await refused.find()).toEqual({ declined: 'fetch failed (ENOTFOUND)' });
  const missing = fromRelease({ dir, log, fetch: async () => new Response('', { status: 404 }) });
  expect(await missing.find()).toMatchObject({ declined: expect.stringContaining('answered 404') });
});

test('checksums are looked up by the whole file name', () => {
  const sums = `${'a'.repeat(64)}  x.tar.gz\n${'b'.repeat(64)} *nats.tar.gz\n`;
  expect(checksumOf(sums, 'nats.tar.gz')).toBe('b'.repeat(64));
  expect(checksumOf(sums, 'tar.gz')).toBeUndefined();
});

test('the machine’s own Debian mirror is found in both formats of apt sources', () => {
  expect(mirrorIn('Types: deb\nURIs: http://mirror.example/debian/\nSuites: bookworm')).toBe(
    'http://mirror.example/debian',
  );
  expect(
    mirrorIn(
      '# deb http://no.example/debian x main\ndeb [arch=amd64] https://m.example/pub/debian bookworm main',
    ),
  ).toBe('https://m.example/pub/debian');
  expect(mirrorIn('deb http://security.example/debian-security bookworm main')).toBeUndefined();
});
