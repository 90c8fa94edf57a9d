import { JetStreamApiError, type JetStreamManager } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import { isNewEnough, REQUIRED_NATS_VERSION } from '../platform/embedded/nats-version.ts';

const NO_JETSTREAM_FOR_ACCOUNT = 10_039;
const NOT_ENABLED = 10_076;
/** Without a leader a cluster answers as if it had no JetStream. */
const TRIES = 10;
const PAUSE_MS = 500;

/** @throws TaskledgerError `nats_too_old`, `jetstream_missing`; `log_unavailable` while JetStream cannot answer */
export async function requireServer(nc: NatsConnection, jsm: JetStreamManager): Promise<void> {
  requireVersion(nc.info?.version ?? '0.0.0');
  for (let attempt = 1; ; attempt += 1) {
    try {
      await jsm.getAccountInfo();
      return;
    } catch (cause) {
      const missing =
        cause instanceof JetStreamApiError &&
        (cause.code === NO_JETSTREAM_FOR_ACCOUNT || cause.code === NOT_ENABLED);
      const hopeless =
        missing || ((cause as Error).name === 'JetStreamNotEnabled' && nc.info?.jetstream !== true);
      if (hopeless) throw new TaskledgerError('jetstream_missing', {}, { cause });
      if (attempt === TRIES)
        throw new TaskledgerError(
          'log_unavailable',
          { reason: `JetStream does not answer: ${(cause as Error).message}` },
          { cause },
        );
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}

/** @throws TaskledgerError `nats_too_old` */
export function requireVersion(version: string): void {
  if (isNewEnough(version)) return;
  throw new TaskledgerError('nats_too_old', { version, required: REQUIRED_NATS_VERSION });
}
