import { once } from 'node:events';
import { createServer, connect as dial, type Socket } from 'node:net';

/** A way to a NATS server that can be closed to every login: a stand-in for a server whose users are changed. */
export interface NatsDoor {
  readonly url: string;
  /** Ends all connections, and refuses every login from now on. */
  refuse(): void;
  admit(): void;
  /** Logins refused so far. */
  refusals(): number;
  close(): Promise<void>;
}

const INFO = {
  server_id: 'DOOR',
  version: '2.15.1',
  auth_required: true,
  max_payload: 1_048_576,
  proto: 1,
  headers: true,
};

/** Starts open. */
export async function startNatsDoor(natsUrl: string): Promise<NatsDoor> {
  const { hostname, port } = new URL(natsUrl);
  const sockets = new Set<Socket>();
  let refusing = false;
  let refusals = 0;

  const keep = (socket: Socket): void => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.once('close', () => sockets.delete(socket));
  };
  const server = createServer((client) => {
    keep(client);
    if (refusing) {
      client.write(`INFO ${JSON.stringify(INFO)}\r\n`);
      client.once('data', () => {
        refusals += 1;
        client.end("-ERR 'Authorization Violation'\r\n");
      });
      return;
    }
    const behind = dial(Number(port), hostname);
    keep(behind);
    client.pipe(behind).pipe(client);
    client.once('close', () => behind.destroy());
    behind.once('close', () => client.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (typeof address !== 'object' || address === null) throw new Error('the door is on no port');

  const endAll = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `nats://127.0.0.1:${address.port}`,
    refuse() {
      refusing = true;
      endAll();
    },
    admit() {
      refusing = false;
    },
    refusals: () => refusals,
    async close() {
      endAll();
      server.close();
      await once(server, 'close');
    },
  };
}
