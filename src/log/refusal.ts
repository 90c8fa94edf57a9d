import { JetStreamApiError } from '@nats-io/jetstream';

/** What JetStream refuses a request with, by the error code of its API. */
export const REFUSALS = {
  no_suitable_peers: 10_005,
  consumer_not_found: 10_014,
  stream_name_in_use: 10_058,
  stream_not_found: 10_059,
  /** Of a write to a bucket: the revision that it expects is not the key's last one. */
  wrong_revision: 10_071,
  /** On a server that is in no cluster. */
  replicas_not_supported: 10_074,
  consumer_exists: 10_148,
  /** Or may not be: the cluster has not agreed on another write to the key yet. */
  key_in_flight: 10_164,
} as const;

/** Whether it is what the client throws for one of these. */
export const isRefusal = (error: unknown, ...kinds: readonly (keyof typeof REFUSALS)[]): boolean =>
  error instanceof JetStreamApiError && kinds.some((kind) => REFUSALS[kind] === error.code);
