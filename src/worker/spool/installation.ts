import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Names } from '../../log/subjects.ts';
import { orUnavailable } from '../../log/unavailable.ts';

/** Tells one log from every other: its stream and when that was made. Throws `log_unavailable`. */
export async function installationOf(nc: NatsConnection, { streams }: Names): Promise<string> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const { created } = await orUnavailable(() => jsm.streams.info(streams.tasks));
  return `${streams.tasks} of ${new Date(created).toISOString()}`;
}
