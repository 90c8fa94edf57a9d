import {
  AckPolicy,
  type ConsumerConfig,
  DeliverPolicy,
  DiscardPolicy,
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
  RetentionPolicy,
  StorageType,
  StoreCompression,
  type StreamConfig,
} from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { type NatsConnection, nanos } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { Logger } from '../observe/log.ts';
import type { Config } from '../platform/config.ts';
import { requireServer } from './server-check.ts';
import type { Names } from './subjects.ts';

type StreamsConfig = Pick<
  Config,
  'replicas' | 'hotWindowHours' | 'historyDays' | 'historyBytes' | 'ackWaitMs'
>;
type Wanted = Partial<StreamConfig> & Pick<StreamConfig, 'name'>;

const HOUR_MS = 3_600_000;
/** Explicit, because the server's default of 1000 cannot be lifted later. */
const MAX_CONSUMERS = 20_000;
const SHORT_DEDUPE_MS = 1_000;
/** A worker that is not heard of for so long is forgotten by the registry. */
const WORKER_TTL_MS = 60_000;
/** Settings that follow the configuration; any other difference is an incompatible stream. */
const CHANGEABLE = ['max_age', 'max_bytes', 'num_replicas', 'duplicate_window'] as const;
/** While a cluster elects its leader. */
const TRIES = 20;
const PAUSE_MS = 500;

export interface StreamParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly config: StreamsConfig;
  readonly logger: Logger;
}

/**
 * Makes the streams and buckets, or brings those that exist up to the configuration. Several processes may do it at once.
 * @throws TaskledgerError `nats_too_old`, `jetstream_missing`, `stream_incompatible` (names the setting), `log_unavailable`
 */
export async function ensureStreams({ nc, names, config, logger }: StreamParts): Promise<void> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  await requireServer(nc, jsm);
  // HISTORY draws from TASKS, so it comes after it.
  for (const wanted of streamConfigs(names, config)) {
    await patiently(() => ensureStream(jsm, wanted, logger));
  }
  const kvm = new Kvm(nc);
  for (const [bucket, options] of bucketConfigs(names, config)) {
    await patiently(() => ensureBucket(jsm, kvm, bucket, options));
  }
}

/** What the streams look like: DESIGN.md 3. */
export function streamConfigs(names: Names, config: StreamsConfig): Wanted[] {
  const common = {
    storage: StorageType.File,
    num_replicas: config.replicas,
    max_consumers: MAX_CONSUMERS,
    allow_direct: true,
    max_msgs: -1,
    max_msgs_per_subject: -1,
  };
  return [
    {
      ...common,
      name: names.streams.tasks,
      description: 'The log: every event of every task, for the hot window',
      subjects: [names.allTasks],
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.Old,
      max_age: nanos(config.hotWindowHours * HOUR_MS),
      max_bytes: -1,
      duplicate_window: nanos(SHORT_DEDUPE_MS),
      republish: { src: names.allTasks, dest: names.allFeed },
    },
    {
      ...common,
      name: names.streams.history,
      description: 'Every event for long, on few subjects; read models are rebuilt from it',
      sources: [{ name: names.streams.tasks, subject_transforms: [names.historyTransform] }],
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.Old,
      max_age: nanos(config.historyDays * 24 * HOUR_MS),
      max_bytes: config.historyBytes,
      duplicate_window: nanos(SHORT_DEDUPE_MS),
      compression: StoreCompression.S2,
    },
    {
      ...common,
      name: names.streams.timers,
      description: 'Schedules of delays, retries and recurring tasks, and what they fired',
      subjects: [...names.timerSubjects],
      retention: RetentionPolicy.Limits,
      discard: DiscardPolicy.Old,
      max_age: 0,
      max_bytes: -1,
      allow_msg_schedules: true,
      allow_msg_ttl: true,
      allow_rollup_hdrs: true,
    },
    {
      ...common,
      name: names.streams.submissions,
      description: 'Tasks submitted by message, until intake has taken them',
      subjects: [names.allSubmissions],
      retention: RetentionPolicy.Workqueue,
      discard: DiscardPolicy.New,
      max_age: 0,
      max_bytes: -1,
    },
  ];
}

interface BucketOptions {
  readonly replicas: number;
  readonly history: number;
  readonly storage: StorageType;
  /** Ms; 0 for ever. */
  readonly ttl: number;
}

function bucketConfigs(names: Names, { replicas }: StreamsConfig): [string, BucketOptions][] {
  const lasting = { replicas, history: 1, storage: StorageType.File, ttl: 0 };
  const { tenants, types, keys, leaders, workers } = names.buckets;
  return [
    [tenants, lasting],
    [types, lasting],
    [keys, lasting],
    [leaders, lasting],
    [workers, { ...lasting, ttl: WORKER_TTL_MS }],
  ];
}

/**
 * The consumer that all workers of a type share: its un-acked deliveries are the leases. Made by whoever comes first.
 */
export async function ensureWorkConsumer(
  {
    nc,
    names,
    config,
  }: Omit<StreamParts, 'logger' | 'config'> & { readonly config: Pick<Config, 'ackWaitMs'> },
  type: string,
): Promise<void> {
  const jsm = await jetstreamManager(nc, { checkAPI: false });
  const wanted: Partial<ConsumerConfig> = {
    durable_name: names.workConsumer(type),
    description: `Work items of type ${type}, leased to one worker at a time`,
    filter_subject: names.work(type),
    ack_policy: AckPolicy.Explicit,
    ack_wait: nanos(config.ackWaitMs),
    deliver_policy: DeliverPolicy.All,
    max_deliver: -1,
    max_ack_pending: -1,
    max_waiting: 4_096,
  };
  await patiently(async () => {
    try {
      await jsm.consumers.add(names.streams.tasks, wanted);
    } catch (error) {
      if (!isApiError(error, CONSUMER_EXISTS)) throw error;
      await jsm.consumers.update(names.streams.tasks, names.workConsumer(type), wanted);
    }
  });
}

const CONSUMER_EXISTS = 10_148;
const STREAM_NAME_IN_USE = 10_058;
const STREAM_NOT_FOUND = 10_059;
/** More than one replica on a server that is in no cluster. */
const REPLICAS_NOT_SUPPORTED = 10_074;

async function ensureStream(jsm: JetStreamManager, wanted: Wanted, logger: Logger): Promise<void> {
  const actual = await findStream(jsm, wanted.name);
  if (actual === undefined) {
    try {
      await jsm.streams.add(wanted);
      logger.info({ stream: wanted.name }, 'stream created');
      return;
    } catch (error) {
      if (!isApiError(error, STREAM_NAME_IN_USE)) throw error;
      return ensureStream(jsm, wanted, logger);
    }
  }
  refuseIncompatible(wanted, actual);
  const changed = CHANGEABLE.filter((key) => wanted[key] !== undefined && wanted[key] !== actual[key]);
  if (changed.length === 0) return;
  const update = Object.fromEntries(changed.map((key) => [key, wanted[key]]));
  await jsm.streams.update(wanted.name, update);
  logger.info({ stream: wanted.name, changed }, 'stream updated');
}

async function findStream(jsm: JetStreamManager, name: string): Promise<StreamConfig | undefined> {
  try {
    return (await jsm.streams.info(name)).config;
  } catch (error) {
    if (isApiError(error, STREAM_NOT_FOUND)) return undefined;
    throw error;
  }
}

/** Throws `stream_incompatible` naming the first setting that differs and must not. */
export function refuseIncompatible(wanted: Wanted, actual: Partial<StreamConfig>): void {
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
    if (!isApiError(error, STREAM_NAME_IN_USE)) throw error;
  }
}

const isApiError = (error: unknown, code: number): boolean =>
  error instanceof JetStreamApiError && error.code === code;

/** Repeats while the cluster cannot answer yet. */
async function patiently(work: () => Promise<void>): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work();
    } catch (cause) {
      if (cause instanceof TaskledgerError) throw cause;
      const { message } = cause as Error;
      if (isApiError(cause, REPLICAS_NOT_SUPPORTED))
        throw new TaskledgerError(
          'config_invalid',
          { key: 'TASKLEDGER_REPLICAS', reason: message },
          { cause },
        );
      if (cause instanceof JetStreamApiError && cause.status !== 503)
        throw new TaskledgerError('log_unavailable', { reason: `${message} (${cause.code})` }, { cause });
      if (attempt === TRIES) throw new TaskledgerError('log_unavailable', { reason: message }, { cause });
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    }
  }
}
