import { readFileSync } from 'node:fs';
import type { ConnectionOptions, NatsConnection } from '@nats-io/transport-node';
import { connect, credsAuthenticator } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { Config } from './config.ts';

export type NatsSettings = Pick<Config, 'natsUrl' | 'natsCreds' | 'natsUser' | 'natsPassword'>;

/**
 * Connection options with the defaults that a long-lived service needs: reconnect for ever, and notice a dead peer in
 * seconds (the client's own defaults give up after 10 tries and notice after minutes).
 */
export function natsOptions(settings: NatsSettings, name: string): ConnectionOptions {
  return {
    servers: settings.natsUrl.split(',').map((server) => server.trim()),
    name,
    maxReconnectAttempts: -1,
    reconnectTimeWait: 250,
    reconnectJitter: 250,
    pingInterval: 5_000,
    maxPingOut: 2,
    ...(settings.natsCreds === undefined
      ? {}
      : { authenticator: credsAuthenticator(readFileSync(settings.natsCreds)) }),
    ...(settings.natsUser === undefined ? {} : { user: settings.natsUser }),
    ...(settings.natsPassword === undefined ? {} : { pass: settings.natsPassword }),
  };
}

/** Connects or throws `nats_unreachable`. */
export async function connectNats(settings: NatsSettings, name: string): Promise<NatsConnection> {
  try {
    return await connect(natsOptions(settings, name));
  } catch (cause) {
    throw new TaskledgerError(
      'nats_unreachable',
      { url: settings.natsUrl, reason: String((cause as Error).message ?? cause) },
      { cause },
    );
  }
}
