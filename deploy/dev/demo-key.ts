import { chmod, readFile, writeFile } from 'node:fs/promises';
import { ensureStreams } from '../../src/log/streams.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import type { Config } from '../../src/platform/config.ts';
import { connectNats } from '../../src/platform/nats.ts';
import { openRegistry } from '../../src/registry/registry.ts';

export const DEMO_TENANT = 'demo';

/**
 * Makes the streams, the demo tenant and an API key for it, unless they exist. The server keeps only the hash of a
 * key, so the key itself is kept in `keyFile`, readable by its owner alone.
 */
export async function ensureDemoKey(config: Config, keyFile: string): Promise<string> {
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
      const known = (await readFile(keyFile, 'utf8').catch(() => '')).trim();
      if (registry.keys.verify(known)?.tenant === DEMO_TENANT) return known;
      const { key } = await registry.keys.create({
        tenant: DEMO_TENANT,
        scopes: ['submit', 'read', 'admin'],
        name: 'demo',
      });
      await writeFile(keyFile, `${key}\n`, { mode: 0o600 });
      await chmod(keyFile, 0o600);
      return key;
    } finally {
      await registry.stop();
    }
  } finally {
    await nc.close();
  }
}
