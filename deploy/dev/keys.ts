import { chmod, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ensureStreams } from '../../src/log/streams.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import type { Config } from '../../src/platform/config.ts';
import { connectNats } from '../../src/platform/nats.ts';
import { ALL_TENANTS, type KeyOwner } from '../../src/registry/keys.ts';
import { openRegistry, type Registry } from '../../src/registry/registry.ts';

export const DEMO_TENANT = 'demo';

export interface DevKeys {
  /** A key of the demo tenant. */
  readonly demo: string;
  /** An operator's key, for all tenants. */
  readonly operator: string;
}

/**
 * Makes the streams, the demo tenant, an API key for it and one for its operator, unless they exist. The server keeps
 * only the hash of a key, so the keys themselves are kept in files of `dir`, readable by their owner alone.
 */
export async function ensureKeys(config: Config, dir: string): Promise<DevKeys> {
  const nc = await connectNats(config, 'taskledger demo set-up');
  try {
    const names = namesOf(config.prefix);
    await ensureStreams({ nc, names, config, logger: silentLogger });
    const registry = openRegistry({ nc, names, logger: silentLogger });
    await registry.start();
    try {
      if (registry.tenants.get(DEMO_TENANT) === undefined) {
        await registry.tenants.put({
          name: DEMO_TENANT,
          displayName: 'Demo',
          createdAt: new Date().toISOString(),
        });
      }
      return {
        demo: await ensureKey(registry, join(dir, 'demo-key'), DEMO_TENANT, 'demo'),
        operator: await ensureKey(registry, join(dir, 'operator-key'), ALL_TENANTS, 'operator'),
      };
    } finally {
      await registry.stop();
    }
  } finally {
    await nc.close();
  }
}

const SCOPES: KeyOwner['scopes'] = ['submit', 'read', 'admin'];

async function ensureKey({ keys }: Registry, file: string, tenant: string, name: string): Promise<string> {
  const known = (await readFile(file, 'utf8').catch(() => '')).trim();
  if (keys.verify(known)?.tenant === tenant) return known;
  const { key } = await keys.create({ tenant, scopes: SCOPES, name });
  await writeFile(file, `${key}\n`, { mode: 0o600 });
  await chmod(file, 0o600);
  return key;
}
