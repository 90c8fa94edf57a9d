import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findNatsServer, type NatsBinary } from '../../src/platform/embedded/nats-binary.ts';
import { startNatsServer } from '../../src/platform/embedded/nats-process.ts';
import { startPostgres } from '../../src/platform/embedded/postgres-process.ts';
import type { Backend } from './backend.ts';

type Log = (line: string) => void;

const CACHE_DIR = fileURLToPath(new URL('../../.taskledger/cache', import.meta.url));

/** The nats-server that tests start processes of; downloaded into the project's cache when the machine has none. */
export const findTestNatsServer = (log: Log): Promise<NatsBinary> =>
  findNatsServer({ cacheDir: CACHE_DIR, explicitBin: process.env['NATS_SERVER_BIN'], log });

/** One nats-server and one Postgres as child processes on free ports, with data that goes when they stop (TEST_KEEP_DATA=1 keeps it). */
export async function startLocalBackend(runId: string, log: Log): Promise<Backend> {
  const dir = await mkdtemp(join(tmpdir(), `taskledger-test-${runId}-`));
  // As root, Postgres runs as another user, who must be able to enter.
  await chmod(dir, 0o755);
  const { bin, version } = await findTestNatsServer(() => {});
  const [nats, postgres] = await Promise.all([
    startNatsServer({ bin, dir: join(dir, 'nats'), log }),
    // Tests lose nothing with the power: no fsync, and room for the pools of every file that runs in parallel.
    startPostgres({ dir: join(dir, 'postgres'), settings: { fsync: 'off', max_connections: '400' }, log }),
  ]);
  log(
    `backend: local processes, nats-server ${version} at ${nats.url}, Postgres at 127.0.0.1:${postgres.port}`,
  );
  return {
    natsUrl: nats.url,
    databaseUrl: postgres.url,
    stop: async () => {
      await Promise.all([nats.stop(), postgres.stop()]);
      if (process.env['TEST_KEEP_DATA']) log(`data kept in ${dir}`);
      else await rm(dir, { recursive: true, force: true });
    },
  };
}
