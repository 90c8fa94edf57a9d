import { readFile } from 'node:fs/promises';
import { startPostgres } from '../../../src/platform/embedded/postgres-process.ts';
import type { Door, Network } from '../network/network.ts';
import type { Victim } from './victim.ts';

/** Postgres with `fsync` on, as in production. */
export interface Database extends Victim {
  readonly door: Door;
  /** For the harness itself: no fault is in its way. */
  readonly url: string;
  /** The same at another `host:port`. */
  urlAt(address: string): string;
}

const USUAL_PORT = 5_432;

export async function startDatabase(options: {
  readonly dir: string;
  readonly network: Network;
  readonly log: (line: string) => void;
}): Promise<Database> {
  const { dir, network, log } = options;
  const home = await network.home('postgres');
  const server = await startPostgres({
    dir,
    home: home.network,
    port: await home.port(USUAL_PORT),
    database: 'taskledger',
    log,
  });
  let down = false;
  const signalAll = async (signal: NodeJS.Signals): Promise<void> => {
    if (down) return;
    for (const pid of [server.pid, ...(await childrenOf(server.pid))]) {
      try {
        process.kill(pid, signal);
      } catch {
        // A backend that has ended meanwhile.
      }
    }
  };
  const { url, port } = server;
  return {
    name: 'postgres',
    door: { home, port },
    url,
    urlAt(address) {
      const other = new URL(url);
      other.host = address;
      return other.href;
    },
    async start() {
      if (down) await server.restart();
      down = false;
    },
    async stop() {
      down = true;
      await server.stop();
    },
    async kill() {
      down = true;
      await server.kill('SIGKILL');
    },
    // Every backend is a process and a group of its own: stopping the postmaster alone would stop no query.
    pause: () => signalAll('SIGSTOP'),
    resume: () => signalAll('SIGCONT'),
  };
}

async function childrenOf(pid: number): Promise<number[]> {
  const text = await readFile(`/proc/${pid}/task/${pid}/children`, 'utf8').catch(() => '');
  return text.split(' ').filter(Boolean).map(Number);
}
