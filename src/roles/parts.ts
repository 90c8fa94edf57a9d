import type { NatsConnection } from '@nats-io/transport-node';
import type { HealthCheck } from '../http/health.ts';
import type { OpenedLog } from '../log/open.ts';
import type { ServerClock } from '../log/server-clock.ts';
import type { StreamsCheck } from '../log/streams-check.ts';
import type { Names } from '../log/subjects.ts';
import type { FlowCheck } from '../observe/flow-check.ts';
import type { Logger } from '../observe/log.ts';
import type { Reading } from '../observe/signals.ts';
import type { Config } from '../platform/config.ts';
import type { NatsWatch } from '../platform/nats-watch.ts';

/** What the roles of a process have in common. */
export interface Parts {
  readonly config: Config;
  readonly nc: NatsConnection;
  readonly natsWatch: NatsWatch;
  readonly names: Names;
  readonly log: OpenedLog;
  /** The clock of this host decides nothing. */
  readonly clock: ServerClock;
  readonly logger: Logger;
  readonly flow: FlowCheck;
  readonly streamsCheck: StreamsCheck;
  /** Consumers that the roles of this process draw from; each adds its own. */
  readonly consumers: { readonly stream: string; readonly consumer: string }[];
  /** What the roles of this process tell of themselves; each adds its own. */
  readonly told: {
    readonly readings: (() => readonly Reading[])[];
    readonly checks: Record<string, () => HealthCheck>;
  };
}
