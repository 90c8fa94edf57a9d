import { JetStreamApiError, type JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import { isNewEnough, REQUIRED_NATS_VERSION } from '../platform/embedded/nats-version.ts';
import type { Patience } from '../platform/patience.ts';
import { orUnavailable } from './unavailable.ts';

const NO_JETSTREAM_FOR_ACCOUNT = 10_039;
const NOT_ENABLED = 10_076;

/** @throws TaskledgerError `nats_too_old`, `jetstream_missing`; `log_unavailable` when JetStream cannot answer for too long */
export async function requireServer(
  nc: NatsConnection,
  jsm: JetStreamManager,
  patience: Patience,
): Promise<void> {
  requireVersion(nc.info?.version ?? '0.0.0');
  await patience.waitFor('JetStream', () =>
    orUnavailable(() =>
      jsm.getAccountInfo().catch((cause: unknown) => {
        throw isMissing(nc, cause) ? new TaskledgerError('jetstream_missing', {}, { cause }) : cause;
      }),
    ),
  );
}

/** Without a leader a cluster answers as if it had no JetStream. */
function isMissing(nc: NatsConnection, cause: unknown): boolean {
  if (cause instanceof JetStreamApiError)
    return cause.code === NO_JETSTREAM_FOR_ACCOUNT || cause.code === NOT_ENABLED;
  return (cause as Error).name === 'JetStreamNotEnabled' && nc.info?.jetstream !== true;
}

/** @throws TaskledgerError `nats_too_old` */
export function requireVersion(version: string): void {
  if (isNewEnough(version)) return;
  throw new TaskledgerError('nats_too_old', { version, required: REQUIRED_NATS_VERSION });
}
