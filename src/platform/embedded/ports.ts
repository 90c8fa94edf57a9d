import { createServer } from 'node:net';
import { TaskledgerError } from '../../domain/errors.ts';

const HOST = '127.0.0.1';

/** Whether nothing listens on this port of the loopback interface right now. */
export const isPortFree = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const probe = createServer();
    probe.once('error', () => resolve(false));
    probe.listen({ host: HOST, port, exclusive: true }, () => probe.close(() => resolve(true)));
  });

/** A port of the loopback interface that was free a moment ago. Somebody else may take it before the caller does. */
export const freePort = (): Promise<number> =>
  new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen({ host: HOST, port: 0, exclusive: true }, () => {
      const address = probe.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      probe.close(() => resolve(port));
    });
  });

export interface PortWish {
  /** What the port is for, as a person would say it: "NATS", "Postgres". */
  readonly what: string;
  /** The port that is tried first. */
  readonly preferred: number;
  /** The setting by which a person asked for exactly this port; without it any free port will do. */
  readonly pinnedBy?: string | undefined;
  readonly log: (line: string) => void;
}

/**
 * The preferred port, or another free one when it is taken, which is said in the log.
 * @throws TaskledgerError `port_taken` when the port is taken and was pinned
 */
export async function choosePort({ what, preferred, pinnedBy, log }: PortWish): Promise<number> {
  if (await isPortFree(preferred)) return preferred;
  if (pinnedBy !== undefined) throw new TaskledgerError('port_taken', { port: preferred, setting: pinnedBy });
  const port = await freePort();
  log(`Port ${preferred} for ${what} is taken; using ${port} instead.`);
  return port;
}
