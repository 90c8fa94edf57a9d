import { join } from 'node:path';
import { findNatsServer } from '../../src/platform/embedded/nats-binary.ts';
import { startNatsServer } from '../../src/platform/embedded/nats-process.ts';
import { startPostgres } from '../../src/platform/embedded/postgres-process.ts';
import type { PortBook } from './ports.ts';
import type { Session } from './session.ts';

export interface ServersOptions {
  /** The servers' data. */
  readonly dataDir: string;
  /** The downloaded nats-server. */
  readonly cacheDir: string;
  readonly ports: PortBook;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly print: (line: string) => void;
}

/** Starts the servers that NATS_URL and DATABASE_URL do not name. The session ends when one of them ends by itself. */
export async function startServers(
  session: Session,
  options: ServersOptions,
): Promise<{ readonly natsUrl: string; readonly databaseUrl: string }> {
  const { NATS_URL, DATABASE_URL } = options.env;
  const natsUrl = NATS_URL || (await startNats(session, options));
  const databaseUrl = DATABASE_URL || (await startDatabase(session, options));
  return { natsUrl, databaseUrl };
}

async function startNats(session: Session, options: ServersOptions): Promise<string> {
  const { dataDir, cacheDir, ports, env, print } = options;
  const { bin } = await findNatsServer({ cacheDir, explicitBin: env['NATS_SERVER_BIN'], log: print });
  const port = await ports.choose({ what: 'NATS', env: 'NATS_PORT', usual: 4222 });
  const monitor = await ports.choose({ what: 'NATS monitoring', env: 'NATS_MONITOR_PORT', usual: 8222 });
  const dir = join(dataDir, 'nats');
  const server = await session.start(() => startNatsServer({ bin, dir, port, monitor, log: print }));
  void server.exited.then(() =>
    session.fail(`nats-server has ended by itself; its log is ${server.logFile}`),
  );
  return server.url;
}

async function startDatabase(session: Session, { dataDir, ports, print }: ServersOptions): Promise<string> {
  const port = await ports.choose({ what: 'Postgres', env: 'POSTGRES_PORT', usual: 5432 });
  const dir = join(dataDir, 'postgres');
  const server = await session.start(() => startPostgres({ dir, port, log: print }));
  void server.exited.then(() => session.fail(`Postgres has ended by itself; its log is ${server.logFile}`));
  return server.url;
}
