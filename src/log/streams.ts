import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  type JetStreamManager,
  jetstreamManager,
  type StreamConfig,
} from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { type NatsConnection, nanos } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { Logger } from '../observe/log.ts';
import type { Config } from '../platform/config.ts';
import { Patience } from '../platform/patience.ts';
import { CopiesJudge } from './copies.ts';
import { isRefusal } from './refusal.ts';
import { requireServer } from './server-check.ts';
import {
  type BucketOptions,
  bucketConfigs,
  type StreamsConfig,
  streamConfigs,
  type WantedStream,
} from './stream-settings.ts';
import type { Names } from './subjects.ts';
import { orUnavailable } from './unavailable.ts';

/** Settings that follow the configuration; any other difference is an incompatible stream. */
const CHANGEABLE = ['max_age', 'max_bytes', 'num_replicas', 'duplicate_window'] as const;
/** How long the servers may take to make a work consumer: while a cluster elects its leader, or meets. */
const CONSUMER_WITHIN_MS = 10_000;

export interface StreamParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly config: StreamsConfig;
  readonly logger: Logger;
  /** Asked before a stream that holds events gets a shorter limit; it stays as it is when this throws. */
  readonly beforeShrinking?: (stream: string, shorter: ShorterLimits) => Promise<void>;
  /** A cluster that has just started may not have met all of its servers yet, or elects its leader. */
  readonly patience?: Patience | undefined;
}

/** The limits that are shorter than before. */
export interface ShorterLimits {
  readonly maxAgeMs?: number;
  readonly maxBytes?: number;
}

/**
 * Makes the streams and buckets, or brings those that exist up to the configuration. Several processes may do it at once.
 * @throws TaskledgerError `nats_too_old`, `jetstream_missing`, `stream_incompatible` (names the setting),
 * `config_invalid` (more copies than servers), `log_unavailable`
 */
export async function ensureStreams({
  nc,
  names,
  config,
  logger,
  beforeShrinking,
  patience = new Patience(),
}: StreamParts): Promise<void> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  await requireServer(nc, jsm, patience);
  const kvm = new Kvm(nc);
  const copies = new CopiesJudge({ replicas: config.replicas, cluster: () => nc.info ?? {} });
  for (const [bucket, options] of bucketConfigs(names, config)) {
    await patience.waitFor(`bucket ${bucket}`, () =>
      answered(copies, () => ensureBucket(jsm, kvm, bucket, options)),
    );
  }
  // HISTORY draws from TASKS, so it comes after it.
  for (const wanted of streamConfigs(names, config)) {
    await patience.waitFor(`stream ${wanted.name}`, () =>
      answered(copies, () => ensureStream(jsm, wanted, { names, logger, beforeShrinking })),
    );
  }
}

/**
 * The consumer that all workers of a type (and version) share: its un-acked deliveries are the leases. Made by whoever
 * comes first. `fromSeq`: for one that is made anew, the first event that is still work at that moment; it is asked
 * before every try.
 */
export async function ensureWorkConsumer(
  {
    nc,
    names,
    config,
    patience = new Patience({ forMs: CONSUMER_WITHIN_MS }),
  }: Omit<StreamParts, 'logger' | 'config'> & { readonly config: Pick<Config, 'ackWaitMs'> },
  type: string,
  { version, fromSeq }: { readonly version?: number; readonly fromSeq?: () => number } = {},
): Promise<void> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const consumer = names.workConsumer(type, version);
  const wanted: Partial<ConsumerConfig> = {
    durable_name: consumer,
    description: `Work items of type ${type}, leased to one worker at a time`,
    filter_subject: names.work(type, version),
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(config.ackWaitMs),
    max_deliver: -1,
    max_ack_pending: -1,
    max_waiting: 4_096,
  };
  const begin = (): Partial<ConsumerConfig> =>
    fromSeq === undefined
      ? { deliver_policy: DeliverPolicy.All }
      : { deliver_policy: DeliverPolicy.StartSequence, opt_start_seq: fromSeq() };
  const ensure = async (): Promise<void> => {
    try {
      await jsm.consumers.add(names.streams.tasks, { ...wanted, ...begin() });
    } catch (error) {
      if (!isRefusal(error, 'consumer_exists')) throw error;
      // Where it began is its own; the client merges what is given here with what the consumer has.
      await jsm.consumers.update(names.streams.tasks, consumer, wanted);
    }
  };
  await patience.waitFor(`consumer ${consumer}`, () => orUnavailable(ensure));
}

async function ensureStream(
  jsm: JetStreamManager,
  wanted: WantedStream,
  how: Pick<StreamParts, 'names' | 'logger'> & {
    beforeShrinking: StreamParts['beforeShrinking'] | undefined;
  },
): Promise<void> {
  const { names, logger, beforeShrinking } = how;
  const found = await findStream(jsm, wanted.name);
  if (found === undefined) {
    try {
      await jsm.streams.add(wanted);
      logger.info({ stream: wanted.name }, 'stream created');
      return;
    } catch (error) {
      if (!isRefusal(error, 'stream_name_in_use')) throw error;
      return ensureStream(jsm, wanted, how);
    }
  }
  const used = found.subjects?.filter((subject) => !names.formerSubjects.includes(subject)) ?? [];
  const actual = { ...found, subjects: used };
  refuseIncompatible(wanted, actual);
  const changed = [
    ...CHANGEABLE.filter((key) => wanted[key] !== undefined && wanted[key] !== actual[key]),
    ...(used.length < (found.subjects?.length ?? 0) ? (['subjects'] as const) : []),
  ];
  if (changed.length === 0) return;
  const shorter = shorterLimits(wanted, actual);
  if (shorter !== undefined) await beforeShrinking?.(wanted.name, shorter);
  const update = Object.fromEntries(changed.map((key) => [key, wanted[key]]));
  await jsm.streams.update(wanted.name, update);
  logger.info({ stream: wanted.name, changed }, 'stream updated');
}

/** No limit is 0 for an age and -1 for bytes. */
function shorterLimits(wanted: WantedStream, actual: Partial<StreamConfig>): ShorterLimits | undefined {
  const shrinks = (to = 0, from = 0): boolean => to > 0 && (from <= 0 || to < from);
  const shorter = {
    ...(shrinks(wanted.max_age, actual.max_age) && { maxAgeMs: (wanted.max_age ?? 0) / 1e6 }),
    ...(shrinks(wanted.max_bytes, actual.max_bytes) && { maxBytes: wanted.max_bytes ?? 0 }),
  };
  return Object.keys(shorter).length === 0 ? undefined : shorter;
}

export async function findStream(jsm: JetStreamManager, name: string): Promise<StreamConfig | undefined> {
  try {
    return (await jsm.streams.info(name)).config;
  } catch (error) {
    if (isRefusal(error, 'stream_not_found')) return undefined;
    throw error;
  }
}

/** Throws `stream_incompatible` naming the first setting that differs and must not. */
function refuseIncompatible(wanted: WantedStream, actual: Partial<StreamConfig>): void {
  const free = new Set<string>([...CHANGEABLE, 'max_consumers', 'description']);
  for (const [setting, expected] of Object.entries(wanted)) {
    const found = (actual as Record<string, unknown>)[setting];
    if (free.has(setting) || includes(found, expected)) continue;
    throw new TaskledgerError('stream_incompatible', {
      stream: wanted.name,
      setting,
      actual: JSON.stringify(found ?? null),
      expected: JSON.stringify(expected),
    });
  }
}

/** Whether `actual` says all that `expected` says. The server leaves out what is false or empty and adds defaults. */
function includes(actual: unknown, expected: unknown): boolean {
  if (Array.isArray(expected)) {
    return (
      Array.isArray(actual) &&
      actual.length === expected.length &&
      expected.every((item, index) => includes(actual[index], item))
    );
  }
  if (typeof expected === 'object' && expected !== null) {
    return Object.entries(expected).every(([key, value]) =>
      includes((actual as Record<string, unknown> | undefined)?.[key], value),
    );
  }
  return actual === expected || (expected === false && actual === undefined);
}

/** Makes one of the buckets, unless it is there. */
export async function makeBucket(
  { nc, names, config }: Pick<StreamParts, 'nc' | 'names' | 'config'>,
  bucket: string,
): Promise<void> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const [, options] = bucketConfigs(names, config).find(([name]) => name === bucket) ?? [];
  if (options !== undefined) await ensureBucket(jsm, new Kvm(nc), bucket, options);
}

async function ensureBucket(
  jsm: JetStreamManager,
  kvm: Kvm,
  bucket: string,
  options: BucketOptions,
): Promise<void> {
  const stream = `KV_${bucket}`;
  const actual = await findStream(jsm, stream);
  if (actual !== undefined) {
    if (actual.num_replicas === options.replicas) return;
    await jsm.streams.update(stream, { num_replicas: options.replicas });
    return;
  }
  try {
    await kvm.create(bucket, options);
  } catch (error) {
    if (!isRefusal(error, 'stream_name_in_use')) throw error;
  }
}

/** Throws `config_invalid` for more copies than the servers can hold, and `log_unavailable` for what else they say. */
const answered = <T>(copies: CopiesJudge, ask: () => Promise<T>): Promise<T> =>
  orUnavailable(() =>
    ask().catch((cause: unknown) => {
      throw copies.judge(cause) ?? cause;
    }),
  );
