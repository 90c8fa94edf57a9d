import {
  DiscardPolicy,
  RetentionPolicy,
  StorageType,
  StoreCompression,
  type StreamConfig,
} from '@nats-io/jetstream';
import { nanos } from '@nats-io/transport-node';
import type { Config } from '../platform/config.ts';
import type { Names } from './subjects.ts';

export type StreamsConfig = Pick<Config, 'replicas' | 'hotWindowHours' | 'historyDays' | 'historyBytes'>;
export type WantedStream = Partial<StreamConfig> & Pick<StreamConfig, 'name'>;

const HOUR_MS = 3_600_000;
/** Explicit, because the server's default of 1000 cannot be lifted later. */
const MAX_CONSUMERS = 20_000;
const SHORT_DEDUPE_MS = 1_000;
/** A worker that is not heard of for so long is forgotten by the registry. */
const WORKER_TTL_MS = 60_000;
/** How long a bulk operation can be looked up after its last change. */
const OPERATIONS_TTL_MS = 90 * 24 * 3_600_000;
/** Longer than any bucket of tokens takes to fill. */
const RATES_TTL_MS = 25 * HOUR_MS;
/** How long a debounce key is remembered after its last new task, beyond the hot window. */
const DEBOUNCES_TTL_MS = 7 * 24 * HOUR_MS;

/**
 * What the streams look like: DESIGN.md 3. HISTORY is a source, not a mirror: a mirror would keep sequences and times,
 * but the server makes it answer the direct gets of TASKS, and with other subjects it answers wrongly.
 */
export function streamConfigs(names: Names, config: StreamsConfig): WantedStream[] {
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

export interface BucketOptions {
  readonly replicas: number;
  readonly history: number;
  readonly storage: StorageType;
  /** Ms; 0 for ever. */
  readonly ttl: number;
}

/** The buckets and their options. */
export function bucketConfigs(
  names: Names,
  { replicas, hotWindowHours }: StreamsConfig,
): [string, BucketOptions][] {
  const lasting = { replicas, history: 1, storage: StorageType.File, ttl: 0 };
  const { tenants, types, keys, controls, operations, leaders, workers, schedules, scheduleMarks } =
    names.buckets;
  const { rates, debounces, retention } = names.buckets;
  return [
    [tenants, lasting],
    [types, lasting],
    [keys, lasting],
    [controls, lasting],
    [operations, { ...lasting, ttl: OPERATIONS_TTL_MS }],
    [leaders, lasting],
    [schedules, lasting],
    [scheduleMarks, lasting],
    [retention, lasting],
    [workers, { ...lasting, ttl: WORKER_TTL_MS }],
    // A limit that is forgotten counts from a full bucket; none takes longer than a day to fill.
    [rates, { ...lasting, storage: StorageType.Memory, ttl: RATES_TTL_MS }],
    [debounces, { ...lasting, ttl: DEBOUNCES_TTL_MS + hotWindowHours * HOUR_MS }],
  ];
}
