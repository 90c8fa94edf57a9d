import { ensureStreams } from '../../src/log/streams.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { silentLogger as logger } from '../../src/observe/log.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { migrate } from '../../src/platform/migrate.ts';
import { connectNats } from '../../src/platform/nats.ts';
import { openRegistry } from '../../src/registry/registry.ts';

export interface Preparation {
  readonly natsUrl: string;
  readonly databaseUrl: string;
  /** The key is one of the first. */
  readonly tenants: readonly string[];
  /** Copies of every stream. */
  readonly replicas: string;
}

/** Makes what an operator makes before the product starts: streams, tables, tenants and a key. */
export async function prepareStand({
  natsUrl,
  databaseUrl,
  tenants,
  replicas,
}: Preparation): Promise<{ apiKey: string }> {
  const config = loadConfig({
    NATS_URL: natsUrl,
    DATABASE_URL: databaseUrl,
    TASKLEDGER_REPLICAS: replicas,
  });
  const names = namesOf(config.prefix);
  await migrate(databaseUrl, { logger });
  const nc = await connectNats(config, 'bench-prepare');
  try {
    await ensureStreams({ nc, names, config, logger });
    const registry = openRegistry({ nc, names, logger });
    await registry.start();
    const createdAt = new Date().toISOString();
    for (const name of tenants) await registry.tenants.put({ name, createdAt });
    const tenant = tenants[0] ?? '*';
    const { key } = await registry.keys.create({
      tenant,
      scopes: ['submit', 'read', 'admin'],
      name: 'bench',
    });
    await registry.stop();
    return { apiKey: key };
  } finally {
    await nc.close();
  }
}
