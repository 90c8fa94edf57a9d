import type { Parameter } from './figure.ts';
import type { Target } from './load/messages.ts';
import { type LoadWorker, type Producer, startLoadWorker, startProducer } from './load-process.ts';
import type { Parts } from './meter.ts';
import { BENCH_TENANT, BENCH_TYPE, type Durability, type Layout, type Stand } from './stand.ts';

export interface BenchSettings {
  /** Length of a timed window. */
  readonly seconds: number;
  /** Of the log that is rebuilt. */
  readonly events: number;
  /** Of each worker process. */
  readonly concurrency: number;
  readonly workers: number;
  readonly via: 'log' | 'http';
  readonly layout: string;
  /** nats-servers, and copies of every stream. */
  readonly replicas: number;
  /** How many tasks wait while a measurement is made that depends on it: one after the other. */
  readonly waiting: readonly number[];
  /** `sync_interval` of JetStream, when not the server's default. */
  readonly sync: string | undefined;
}

/** What a measurement works with: the product on empty servers, load processes that end with it, and a place for figures. */
export interface Bench {
  readonly settings: BenchSettings;
  readonly stand: Stand;
  readonly log: (line: string) => void;
  producer(via?: Target['via'], tenant?: string): Promise<Producer>;
  /** `settings.workers` worker processes, pulling already. */
  startWorkers(options?: WorkersWanted): Promise<readonly LoadWorker[]>;
  /** The product's parts and all load processes started so far. */
  parts(): Parts;
  report(name: string, value: number, unit: string, params?: Readonly<Record<string, Parameter>>): void;
}

export interface Measurement {
  readonly name: string;
  readonly about: string;
  /** When it is not the one asked for. */
  readonly layout?: Layout;
  /** To make before the product starts; BENCH_TENANT alone when absent. */
  readonly tenants?: readonly string[];
  /** When it is not what was asked for. */
  readonly durability?: Durability;
  /** Only measured when it is named. */
  readonly onRequest?: true;
  run(bench: Bench): Promise<void>;
}

export interface WorkersWanted {
  readonly keepLatency?: boolean;
  /** Of each, when it is not what was asked for on the command line. */
  readonly concurrency?: number;
  readonly runMs?: number;
}

export interface Loads {
  producer(via: Target['via'], tenant?: string): Promise<Producer>;
  startWorkers(wanted: WorkersWanted): Promise<readonly LoadWorker[]>;
  parts(): Parts;
  end(): Promise<void>;
}

/** The load processes of one measurement. `nodeArgs` is asked with `submitter` and `worker`. */
export function openLoads(
  stand: Stand,
  { concurrency, workers: workerCount }: BenchSettings,
  nodeArgs: (part: string) => readonly string[],
): Loads {
  const producers: Producer[] = [];
  const workers: LoadWorker[] = [];
  return {
    async producer(via, tenant = BENCH_TENANT) {
      const producer = startProducer(nodeArgs('submitter'));
      producers.push(producer);
      const { natsUrl, apiUrl, apiKey } = stand;
      await producer.call('open', { natsUrl, apiUrl, apiKey, tenant, type: BENCH_TYPE, via });
      return producer;
    },
    async startWorkers({ keepLatency = false, ...wanted }) {
      const started = Array.from({ length: workerCount }, () => startLoadWorker(nodeArgs('worker')));
      workers.push(...started);
      await Promise.all(
        started.map((worker) =>
          worker.call('open', {
            natsUrl: stand.natsUrl,
            type: BENCH_TYPE,
            concurrency,
            ...wanted,
            keepLatency,
          }),
        ),
      );
      return started;
    },
    parts: () => ({
      submitter: producers.map(({ pid }) => pid),
      worker: workers.map(({ pid }) => pid),
    }),
    async end() {
      await Promise.all(producers.map((producer) => producer.end()));
      await Promise.all(workers.map((worker) => worker.end()));
    },
  };
}

export const completedBy = (workers: readonly LoadWorker[]): number =>
  workers.reduce((sum, worker) => sum + worker.progress().completed, 0);
