import { join } from 'node:path';
import { TaskledgerError } from '../../domain/errors.ts';
import { fromDebian } from './nats-debian.ts';
import { fromCache, fromExplicitBin, fromPath } from './nats-installed.ts';
import { fromRelease } from './nats-release.ts';
import type { NatsSource, SourceName } from './nats-source.ts';

export interface NatsBinary {
  readonly bin: string;
  readonly version: string;
  readonly source: SourceName;
}

export interface FindNatsServerOptions {
  /** Where downloaded servers are kept. */
  readonly cacheDir: string;
  /** A program that somebody named: then no other is looked for. */
  readonly explicitBin?: string | undefined;
  readonly log: (line: string) => void;
  /** In the order of preference; by default PATH, the cache, the release archive, Debian. */
  readonly sources?: readonly NatsSource[];
}

/**
 * Finds or fetches a nats-server that is new enough.
 * @throws TaskledgerError `nats_server_unavailable` with everything that was tried and why it failed
 */
export async function findNatsServer(options: FindNatsServerOptions): Promise<NatsBinary> {
  const { explicitBin, log } = options;
  const sources = explicitBin ? [fromExplicitBin(explicitBin)] : (options.sources ?? defaultSources(options));
  const tried: string[] = [];
  for (const source of sources) {
    const found = await source.find();
    if ('bin' in found) {
      log(`nats-server ${found.version} (${source.name}: ${found.bin})`);
      return { ...found, source: source.name };
    }
    tried.push(`${source.name}: ${found.declined}`);
  }
  throw new TaskledgerError('nats_server_unavailable', { tried: tried.join('; ') });
}

function defaultSources({ cacheDir, log }: FindNatsServerOptions): NatsSource[] {
  const dir = join(cacheDir, 'nats-server');
  return [fromPath(), fromCache(dir), fromRelease({ dir, log }), fromDebian({ dir, log })];
}
