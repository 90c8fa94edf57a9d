import { readFile } from 'node:fs/promises';
import { startPostgres } from '../../../src/platform/embedded/postgres-process.ts';
import type { Victim } from './victim.ts';

/** Postgres with `fsync` on, as in production. */
export interface Database extends Victim {
  readonly port: number;
  /** Past all proxies. */
  readonly url: string;
  /** The same through another port. */
  urlVia(port: number): string;
}

export async function startDatabase(dir: string, log: (line: string) => void): Promise<Database> {
  const server = await startPostgres({ dir, database: 'taskledger', log });
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
    port,
    url,
    urlVia(via) {
      const other = new URL(url);
      other.port = String(via);
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
