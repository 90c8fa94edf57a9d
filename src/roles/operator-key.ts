import { readFile } from 'node:fs/promises';
import type { Logger } from '../observe/log.ts';
import type { Config } from '../platform/config.ts';
import { Patience } from '../platform/patience.ts';
import type { Service } from '../platform/service.ts';
import { ALL_TENANTS } from '../registry/keys.ts';
import type { Registry } from '../registry/registry.ts';

/** Sees to it that the installation has its first key. */
export const operatorKeyOf = (config: Config, { keys }: Registry, logger: Logger): Service => ({
  name: 'operator key',
  async start(patience = new Patience()) {
    const { operatorKey, operatorKeyFile } = config;
    const key =
      operatorKey ??
      (operatorKeyFile === undefined ? undefined : (await readFile(operatorKeyFile, 'utf8')).trim());
    if (key === undefined) return;
    const became = await patience.waitFor('the operator key', () =>
      keys.install(key, { tenant: ALL_TENANTS, scopes: ['admin'], name: 'operator' }),
    );
    if (became === 'revoked') logger.warn({}, 'the operator key of the configuration is revoked');
    else logger.info({ became }, 'the operator key of the configuration is in place');
  },
  stop: async () => {},
});
