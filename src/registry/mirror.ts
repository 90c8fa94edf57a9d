import { setTimeout as delay } from 'node:timers/promises';
import type { KV, KvWatchEntry } from '@nats-io/kv';
import { Kvm } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { Logger } from '../observe/log.ts';
import type { Service } from '../platform/service.ts';

/**
 * A KV bucket held in memory: reads never leave the process, writes go to the bucket first.
 *
 * The map has one owner, `#accept`, which drops anything older than what it knows of a key: a write's own echo and a
 * watch that starts over are harmless. Another process sees a write as soon as its watch delivers it (milliseconds).
 */
export interface Mirror<T> extends Service {
  get(key: string): T | undefined;
  values(): T[];
  /** Stores and returns once the bucket has it. Throws `log_unavailable`. */
  put(key: string, value: T): Promise<void>;
}

interface MirrorOptions<T> {
  readonly nc: NatsConnection;
  readonly bucket: string;
  readonly logger: Logger;
  /** Reads a record, or throws: a record that cannot be read is reported and ignored. */
  readonly parse: (value: unknown) => T;
}

const LOAD_TIMEOUT_MS = 10_000;
const WATCH_RETRY_MS = 500;

export function createMirror<T>(options: MirrorOptions<T>): Mirror<T> {
  return new KvMirror(options);
}

class KvMirror<T> implements Mirror<T> {
  readonly name: string;
  readonly #options: MirrorOptions<T>;
  readonly #entries = new Map<string, { readonly revision: number; readonly value: T | undefined }>();
  #kv: KV | undefined;
  #watch: (AsyncIterable<KvWatchEntry> & { stop(): void }) | undefined;
  #watching: Promise<void> | undefined;
  #stopped = new AbortController();

  constructor(options: MirrorOptions<T>) {
    this.name = `mirror of ${options.bucket}`;
    this.#options = options;
  }

  get(key: string): T | undefined {
    return this.#entries.get(key)?.value;
  }

  values(): T[] {
    return [...this.#entries.values()].flatMap(({ value }) => (value === undefined ? [] : [value]));
  }

  async put(key: string, value: T): Promise<void> {
    if (this.#kv === undefined)
      throw new TaskledgerError('log_unavailable', { reason: `${this.name} is not started` });
    try {
      const revision = await this.#kv.put(key, JSON.stringify(value));
      this.#accept(key, revision, value);
    } catch (cause) {
      throw new TaskledgerError('log_unavailable', { reason: messageOf(cause) }, { cause });
    }
  }

  async start(): Promise<void> {
    this.#stopped = new AbortController();
    const kv = await new Kvm(this.#options.nc).open(this.#options.bucket);
    this.#kv = kv;
    await new Promise<void>((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new TaskledgerError('log_unavailable', { reason: `${this.name} did not load` })),
        LOAD_TIMEOUT_MS,
      );
      this.#watching = this.#run(kv, () => {
        clearTimeout(timer);
        resolve();
      });
    });
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    this.#watch?.stop();
    await this.#watching;
    this.#watching = undefined;
  }

  /** Watches until stopped; a watch that ends (consumer lost, server gone) starts again from everything. */
  async #run(kv: KV, onLoaded: () => void): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      try {
        this.#watch = await kv.watch();
        // A stop during the await found no watch to end.
        if (this.#stopped.signal.aborted) this.#watch.stop();
        if ((await kv.status()).values === 0) onLoaded();
        for await (const entry of this.#watch) {
          this.#receive(entry);
          if (entry.delta === 0) onLoaded();
        }
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        this.#options.logger.warn({ bucket: this.#options.bucket, reason: messageOf(error) }, 'watch ended');
      }
      await delay(WATCH_RETRY_MS, undefined, { signal: this.#stopped.signal }).catch(() => undefined);
    }
  }

  #receive(entry: KvWatchEntry): void {
    if (entry.operation !== 'PUT') {
      this.#accept(entry.key, entry.revision, undefined);
      return;
    }
    try {
      this.#accept(entry.key, entry.revision, this.#options.parse(entry.json()));
    } catch (error) {
      const { logger, bucket } = this.#options;
      logger.error({ bucket, key: entry.key, reason: messageOf(error) }, 'record is unreadable and ignored');
    }
  }

  #accept(key: string, revision: number, value: T | undefined): void {
    if (revision < (this.#entries.get(key)?.revision ?? 0)) return;
    this.#entries.set(key, { revision, value });
  }
}

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
