import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { connect } from '@nats-io/transport-node';
import { TaskledgerError } from '../../domain/errors.ts';
import { type Exit, launchServer, reclaimFolder } from './child-server.ts';
import { addressesOf, type NetworkHome } from './network-home.ts';
import { freePort } from './ports.ts';
import { whyNotUp } from './server-startup.ts';

const MAX_PAYLOAD_BYTES = 1024 * 1024;
const START_TIMEOUT_MS = 30_000;
/** A free port may be taken by somebody else before the server binds it. */
const PORT_ATTEMPTS = 3;

export interface NatsServerOptions {
  /** The nats-server program. */
  readonly bin: string;
  /** Holds the configuration, the log and the JetStream store; created when missing. */
  readonly dir: string;
  /** A free one when absent or 0. */
  readonly port?: number;
  /** The server's name in its cluster; must stay the same over restarts. */
  readonly name?: string;
  /** Port of the HTTP monitoring endpoint; none when absent, a free one when 0. */
  readonly monitor?: number;
  /** On the loopback interface when absent. In a namespace of its own it needs a port of its own choice. */
  readonly home?: NetworkHome | undefined;
  /** `routes` are `host:port` of members to dial. */
  readonly cluster?: {
    readonly name: string;
    readonly port: number;
    readonly routes: readonly string[];
    /** `false`: members and clients use no address but those they were given, so that each way can lead through a proxy. */
    readonly gossip?: boolean;
  };
  readonly maxPayload?: number;
  /** JetStream `sync_interval`: `always`, or a duration such as `2m`, the server's default. */
  readonly syncInterval?: string;
  /** Who may use the system account; everybody else needs no credentials, as without it. */
  readonly system?: { readonly user: string; readonly password: string };
  readonly log?: (line: string) => void;
}

export interface NatsServer {
  readonly url: string;
  readonly port: number;
  /** Base URL of the monitoring endpoint, when asked for. */
  readonly monitorUrl: string | undefined;
  readonly pid: number;
  readonly logFile: string;
  readonly exited: Promise<Exit>;
  /** Orderly stop; waits until the process is gone. */
  stop(): Promise<void>;
  /** SIGKILL unless named otherwise; SIGSTOP and SIGCONT freeze and thaw it. */
  kill(signal?: NodeJS.Signals): Promise<void>;
}

/**
 * Starts a nats-server with JetStream and waits until JetStream answers (for a member of a cluster: until the port
 * answers, because JetStream cannot before a quorum is up).
 * @throws TaskledgerError `server_start_failed`, `server_in_use`
 */
export async function startNatsServer(options: NatsServerOptions): Promise<NatsServer> {
  const { dir, log = () => {} } = options;
  await mkdir(dir, { recursive: true });
  await reclaimFolder({ name: 'nats-server', dir, stopSignal: 'SIGTERM', log });
  const mayChoose = options.port === undefined || options.port === 0;
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await launch(options);
    } catch (error) {
      const portTaken = error instanceof TaskledgerError && error.message.includes('address already in use');
      if (!portTaken || !mayChoose || attempt === PORT_ATTEMPTS) throw error;
    }
  }
}

async function launch(options: NatsServerOptions): Promise<NatsServer> {
  const port = options.port || (await freePort());
  const monitor = options.monitor === 0 ? await freePort() : options.monitor;
  const configFile = join(options.dir, 'nats.conf');
  const logFile = join(options.dir, 'nats-server.log');
  await writeFile(configFile, configText({ ...options, port, monitor }));
  const child = await launchServer({
    name: 'nats-server',
    bin: options.bin,
    args: ['--config', configFile],
    dir: options.dir,
    logFile,
    namespace: options.home?.namespace,
    stopSignal: 'SIGTERM',
  });
  const { reach } = addressesOf(options.home);
  const url = `nats://${reach}:${port}`;
  const reason = await whyNotUp(child, {
    readyLine: 'Server is ready',
    probe: () => useServer(url, options.cluster === undefined),
    timeoutMs: START_TIMEOUT_MS,
  });
  if (reason !== undefined)
    throw new TaskledgerError('server_start_failed', { server: 'nats-server', reason, logFile });
  const { pid, exited, stop, kill } = child;
  return {
    url,
    port,
    monitorUrl: monitor === undefined ? undefined : `http://${reach}:${monitor}`,
    pid,
    logFile,
    exited,
    stop,
    kill,
  };
}

async function useServer(url: string, withJetStream: boolean): Promise<void> {
  const connection = await connect({ servers: url, reconnect: false, timeout: 1_000 });
  try {
    if (withJetStream) await (await jetstreamManager(connection, { timeout: 1_000 })).getAccountInfo();
  } finally {
    await connection.close();
  }
}

type ConfigInput = Omit<NatsServerOptions, 'monitor'> & {
  readonly port: number;
  readonly monitor: number | undefined;
};

function configText(input: ConfigInput): string {
  const { dir, port, name, monitor, cluster, maxPayload, syncInterval, system } = input;
  const { bind } = addressesOf(input.home);
  const lines = [
    `server_name: ${JSON.stringify(name ?? 'taskledger')}`,
    `listen: "${bind}:${port}"`,
    `max_payload: ${maxPayload ?? MAX_PAYLOAD_BYTES}`,
    'jetstream {',
    `  store_dir: ${JSON.stringify(join(dir, 'store'))}`,
    ...(syncInterval === undefined ? [] : [`  sync_interval: ${JSON.stringify(syncInterval)}`]),
    '}',
    ...(monitor === undefined ? [] : [`http: "${bind}:${monitor}"`]),
  ];
  if (system !== undefined)
    // A server that has users asks for one: those without credentials are this one.
    lines.push(
      'accounts {',
      '  ALL { jetstream: enabled, users: [{ user: "anybody", password: "" }] }',
      `  $SYS { users: [{ user: ${JSON.stringify(system.user)}, password: ${JSON.stringify(system.password)} }] }`,
      '}',
      'no_auth_user: anybody',
    );
  if (cluster !== undefined) {
    const routes = cluster.routes.map((route) => `"nats://${route}"`).join(', ');
    lines.push(
      'cluster {',
      `  name: ${JSON.stringify(cluster.name)}`,
      `  listen: "${bind}:${cluster.port}"`,
      `  routes: [${routes}]`,
      // Where members would look for one another when told to: nothing listens on the discard port.
      ...(cluster.gossip === false ? ['  no_advertise: true', '  advertise: "127.0.0.1:9"'] : []),
      '}',
    );
  }
  return `${lines.join('\n')}\n`;
}
