import { jetstreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../../domain/errors.ts';
import type { Names } from '../../log/subjects.ts';

/** Tells one log from every other: its stream and when that was made. Throws `log_unavailable`. */
export async function installationOf(nc: NatsConnection, { streams }: Names): Promise<string> {
  try {
    const jsm = await jetstreamManager(nc, { checkAPI: false });
    const { created } = await jsm.streams.info(streams.tasks);
    return `${streams.tasks} of ${new Date(created).toISOString()}`;
  } catch (cause) {
    throw new TaskledgerError('log_unavailable', { reason: (cause as Error).message }, { cause });
  }
}
