import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { install } from './nats-installed.ts';
import type { NatsSource } from './nats-source.ts';
import { TESTED_NATS_VERSION } from './nats-version.ts';

const run = promisify(execFile);

const RELEASES = 'https://github.com/nats-io/nats-server/releases/download';
/** The list of checksums is small: a network that refuses shows here, in seconds. */
const CHECKSUMS_TIMEOUT_MS = 8_000;
const ARCHIVE_TIMEOUT_MS = 180_000;

const ARCHITECTURES: Readonly<Record<string, string>> = {
  x64: 'amd64',
  arm64: 'arm64',
  arm: 'arm7',
  ia32: '386',
  ppc64: 'ppc64le',
  s390x: 's390x',
};

export interface ReleaseOptions {
  readonly dir: string;
  readonly log: (line: string) => void;
  readonly version?: string;
  readonly fetch?: typeof globalThis.fetch;
  readonly platform?: string;
  readonly arch?: string;
}

/** The official release archive, checked against the release's SHA256SUMS. */
export function fromRelease(options: ReleaseOptions): NatsSource {
  const {
    dir,
    log,
    version = TESTED_NATS_VERSION,
    fetch = globalThis.fetch,
    platform = process.platform,
    arch = process.arch,
  } = options;
  const archive = `nats-server-v${version}-${platform}-${ARCHITECTURES[arch] ?? arch}.tar.gz`;
  const base = `${RELEASES}/v${version}`;

  const download = async (url: string, timeoutMs: number): Promise<Buffer> => {
    const response = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
    if (!response.ok) throw new Error(`${url} answered ${response.status}`);
    return Buffer.from(await response.arrayBuffer());
  };

  const fetchInto = async (scratch: string): Promise<string> => {
    const checksums = (await download(`${base}/SHA256SUMS`, CHECKSUMS_TIMEOUT_MS)).toString('utf8');
    const expected = checksumOf(checksums, archive);
    if (expected === undefined) throw new Error(`the release ${version} has no ${archive}`);
    log(`Downloading ${base}/${archive}`);
    const content = await download(`${base}/${archive}`, ARCHIVE_TIMEOUT_MS);
    const actual = createHash('sha256').update(content).digest('hex');
    if (actual !== expected)
      throw new Error(`${archive} has the checksum ${actual}; the release says ${expected}`);
    await writeFile(join(scratch, archive), content);
    await run('tar', ['-xzf', archive, '--strip-components=1'], { cwd: scratch });
    return join(scratch, 'nats-server');
  };

  return { name: 'release archive', find: () => install(dir, fetchInto) };
}

/** The checksum of one file in the format of `sha256sum`: `<hex>  <name>` a line. */
export function checksumOf(checksums: string, file: string): string | undefined {
  for (const line of checksums.split('\n')) {
    const match = /^([0-9a-f]{64})\s+\*?(.+?)\s*$/.exec(line);
    if (match?.[2] === file) return match[1];
  }
  return undefined;
}
