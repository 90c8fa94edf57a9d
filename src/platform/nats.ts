import { readFileSync } from 'node:fs';
import type { Authenticator, ConnectionOptions, NatsConnection } from '@nats-io/transport-node';
import {
  AuthorizationError,
  connect,
  credsAuthenticator,
  UserAuthenticationExpiredError,
} from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import { type Clock, monotonicClock } from './clock.ts';
import type { Config } from './config.ts';
import type { Patience } from './patience.ts';

export type NatsSettings = Pick<Config, 'natsUrl' | 'natsCreds' | 'natsUser' | 'natsPassword'>;

const DIAL_PAUSE_MS = 250;
const DIAL_JITTER_MS = 250;

/**
 * How long the client shall wait before it dials a server again. It measures that by the wall clock, so that after a
 * clock was put back it would dial no server for as long: whenever the pause is over by the monotonic clock, it is told
 * to dial whatever it believes.
 */
export function dialPace(
  leastMs: number,
  jitterMs: number,
  { clock, dice }: { clock: Clock; dice: () => number } = { clock: monotonicClock, dice: Math.random },
): () => number {
  let pauseMs = 0;
  let overAt = Number.NEGATIVE_INFINITY;
  return () => {
    const now = clock.now();
    if (now < overAt) return pauseMs;
    pauseMs = leastMs + dice() * jitterMs;
    overAt = now + pauseMs;
    return Number.NEGATIVE_INFINITY;
  };
}

/**
 * Logs in with what the file holds at that moment, so that credentials are replaced without a restart. What cannot be
 * read or is no credentials, as a file that is just being written, is passed over for what was good before: the client
 * closes a connection for good when its authenticator throws. Throws `config_invalid` when the file is not good at first.
 */
function credentialsIn(path: string): Authenticator {
  const read = (): Authenticator => credsAuthenticator(readFileSync(path));
  let good: Authenticator;
  try {
    good = read();
    good();
  } catch (cause) {
    throw new TaskledgerError(
      'config_invalid',
      { key: 'NATS_CREDS', reason: (cause as Error).message },
      { cause },
    );
  }
  return (nonce) => {
    try {
      const fresh = read();
      const login = fresh(nonce);
      good = fresh;
      return login;
    } catch {
      return good(nonce);
    }
  };
}

/**
 * Connection options with the defaults that a long-lived service needs: reconnect for ever, also to a server that refuses
 * the login for a while, and notice a dead peer in seconds (the client's own defaults give up after 10 tries or two
 * refusals, and notice after minutes).
 */
export function natsOptions(settings: NatsSettings, name: string): ConnectionOptions {
  return {
    servers: settings.natsUrl.split(',').map((server) => server.trim()),
    name,
    maxReconnectAttempts: -1,
    ignoreAuthErrorAbort: true,
    reconnectDelayHandler: dialPace(DIAL_PAUSE_MS, DIAL_JITTER_MS),
    pingInterval: 5_000,
    maxPingOut: 2,
    ...(settings.natsCreds === undefined ? {} : { authenticator: credentialsIn(settings.natsCreds) }),
    ...(settings.natsUser === undefined ? {} : { user: settings.natsUser }),
    ...(settings.natsPassword === undefined ? {} : { pass: settings.natsPassword }),
  };
}

/**
 * Connects as soon as there is a server. Throws `nats_unreachable`, `nats_refused`, `config_invalid`, or `shutting_down`
 * when the patience is told to stop.
 */
export function connectPatiently(
  settings: NatsSettings,
  name: string,
  patience: Patience,
): Promise<NatsConnection> {
  const url = settings.natsUrl;
  return patience.waitFor('NATS', () => connectNats(settings, name), {
    unanswered: () => new TaskledgerError('nats_unreachable', { url, reason: 'no answer' }),
    late: (nc) => void nc.close(),
  });
}

/** Connects or throws `nats_unreachable`, or `nats_refused` when the login is not good, or `config_invalid`. */
export async function connectNats(settings: NatsSettings, name: string): Promise<NatsConnection> {
  const options = natsOptions(settings, name);
  try {
    return await connect(options);
  } catch (cause) {
    const refused = cause instanceof AuthorizationError || cause instanceof UserAuthenticationExpiredError;
    throw new TaskledgerError(
      refused ? 'nats_refused' : 'nats_unreachable',
      { url: settings.natsUrl, reason: String((cause as Error).message ?? cause) },
      { cause },
    );
  }
}
