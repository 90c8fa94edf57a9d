import { setTimeout as delay } from 'node:timers/promises';
import type { StreamInfo } from '@nats-io/jetstream';
import type { KV, KvEntry, KvWatchEntry } from '@nats-io/kv';
import { Kvm } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import { isRefusal } from '../log/refusal.ts';
import { orUnavailable } from '../log/unavailable.ts';
import type { Logger } from '../observe/log.ts';
import { Patience, sparingly } from '../platform/patience.ts';
import type { Service } from '../platform/service.ts';
import { goneBefore, Replacement } from './replacement.ts';

/**
 * A KV bucket held in memory: reads never leave the process, writes go to the bucket first.
 *
 * The map has one owner, `#accept`, which drops anything older than what it knows of a key: a write's own echo and a
 * watch that starts over are harmless. Another process sees a write as soon as its watch delivers it (milliseconds).
 * A watch whose consumer the server has lost stays silent for ever, so the bucket is asked every CHECK_MS whether it has
 * more than the watch has said; then the watch starts over. Nor does a watch tell of a purge or of what is too old: what
 * the bucket begins after is gone.
 */
export interface Mirror<T> extends Service {
  get(key: string): T | undefined;
  /** Revision of the last change of the key that this process has heard of; undefined when it knows none. */
  revisionOf(key: string): number | undefined;
  /** As the bucket has it at this moment. Throws `log_unavailable`. */
  read(key: string): Promise<T | undefined>;
  values(): T[];
  entries(): [key: string, value: T][];
  /** Stores and returns once the bucket has it. Throws `log_unavailable`. */
  put(key: string, value: T): Promise<void>;
  /** Removes and returns once the bucket has it removed. Throws `log_unavailable`. */
  delete(key: string): Promise<void>;
  /** Calls back for every change from now on, whoever made it; `undefined` is a record that is gone. */
  onChange(listener: Listener<T>): void;
  /**
   * Replaces a value by what `build` makes of it, and calls it again when somebody else was faster: nobody's change is lost.
   * Undefined removes the key; the same value changes nothing. Throws `log_unavailable`.
   */
  change(key: string, build: (current: T | undefined) => T | undefined): Promise<T | undefined>;
}

type Watch = AsyncIterable<KvWatchEntry> & { stop(): void };
export type Listener<T> = (key: string, value: T | undefined) => void;

interface MirrorOptions<T> {
  readonly nc: NatsConnection;
  readonly bucket: string;
  readonly logger: Logger;
  /** Reads a record, or throws: a record that cannot be read is reported and ignored. */
  readonly parse: (value: unknown) => T;
}

const WATCH_RETRY_MS = 500;
const CHECK_MS = 2_000;
/** Of a record that is known from the bucket before: any revision of the new one is news. */
const DOUBTED = 0;
/** Changes of others in a row after which a key is left to them. */
const MAX_CONFLICTS = 20;
const CONFLICT_PAUSE_MS = 20;

export function createMirror<T>(options: MirrorOptions<T>): Mirror<T> {
  return new KvMirror(options);
}

class KvMirror<T> implements Mirror<T> {
  readonly name: string;
  readonly #options: MirrorOptions<T>;
  readonly #entries = new Map<string, { readonly revision: number; readonly value: T | undefined }>();
  #kv: KV | undefined;
  #watch: Watch | undefined;
  /** Highest revision that the watch has delivered, or that the bucket had when the watch had delivered all. */
  #heard = 0;
  #watching: Promise<unknown> | undefined;
  #stopped = new AbortController();
  readonly #replacement = new Replacement();
  readonly #listeners: Listener<T>[] = [];
  readonly #sayEnded: (error: unknown) => void;

  constructor(options: MirrorOptions<T>) {
    const { bucket, logger } = options;
    this.name = `mirror of ${bucket}`;
    this.#options = options;
    this.#sayEnded = sparingly((error) =>
      logger.warn({ bucket, reason: messageOf(error) }, 'the watch of a bucket ended; watching again'),
    );
  }

  get(key: string): T | undefined {
    return this.#entries.get(key)?.value;
  }

  revisionOf(key: string): number | undefined {
    return this.#entries.get(key)?.revision;
  }

  values(): T[] {
    return this.entries().map(([, value]) => value);
  }

  entries(): [key: string, value: T][] {
    return [...this.#entries].flatMap(([key, { value }]): [string, T][] =>
      value === undefined ? [] : [[key, value]],
    );
  }

  onChange(listener: Listener<T>): void {
    this.#listeners.push(listener);
  }

  put(key: string, value: T): Promise<void> {
    return this.#ask(async (kv) => this.#accept(key, await kv.put(key, JSON.stringify(value)), value));
  }

  delete(key: string): Promise<void> {
    // The marker's revision is not told: the bucket's last one is not older, and the watch brings what is newer.
    return this.#ask(async (kv) => {
      await kv.delete(key);
      const marker = await kv.get(key);
      if (marker?.operation !== 'PUT') this.#accept(key, marker?.revision ?? 0, undefined);
    });
  }

  read(key: string): Promise<T | undefined> {
    return this.#ask(async (kv) => {
      const entry = await kv.get(key);
      if (entry === null) return undefined;
      this.#read(entry);
      return this.get(key);
    });
  }

  async #ask<R>(question: (kv: KV) => Promise<R>): Promise<R> {
    if (this.#kv === undefined)
      throw new TaskledgerError('log_unavailable', { reason: `${this.name} is not started` });
    try {
      return await question(this.#kv);
    } catch (cause) {
      throw new TaskledgerError('log_unavailable', { reason: messageOf(cause) }, { cause });
    }
  }

  async change(key: string, build: (current: T | undefined) => T | undefined): Promise<T | undefined> {
    const kv = this.#kv;
    if (kv === undefined)
      throw new TaskledgerError('log_unavailable', { reason: `${this.name} is not started` });
    for (let conflicts = 0; conflicts < MAX_CONFLICTS; conflicts += 1) {
      const { revision = 0, value: current } = this.#entries.get(key) ?? {};
      const next = build(current);
      if (next === current) return current;
      try {
        if (next !== undefined)
          this.#accept(key, await kv.put(key, JSON.stringify(next), { previousSeq: revision }), next);
        else {
          await kv.delete(key, { previousSeq: revision });
          this.#accept(key, revision, undefined);
        }
        return next;
      } catch (cause) {
        if (!isRefusal(cause, 'wrong_revision', 'key_in_flight'))
          throw new TaskledgerError('log_unavailable', { reason: messageOf(cause) }, { cause });
      }
      // A replica may lag behind the leader that refused.
      if (conflicts > 0) await delay(CONFLICT_PAUSE_MS);
      await this.read(key);
    }
    throw new TaskledgerError('log_unavailable', { reason: `others keep changing ${key}` });
  }

  async start(patience = new Patience()): Promise<void> {
    const { nc, bucket } = this.#options;
    this.#stopped = new AbortController();
    const kv = await patience.waitFor(this.name, () => orUnavailable(() => new Kvm(nc).open(bucket)));
    this.#kv = kv;
    const loaded = new Promise<void>((resolve) => {
      this.#watching = Promise.all([this.#run(kv, resolve), this.#check(kv)]);
    });
    await patience.waitFor(this.name, () => loaded);
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
        const watch = await this.#unlessStopped(kv.watch().then((made) => this.#orEnd(made)));
        this.#watch = watch;
        const { values, streamInfo } = await this.#unlessStopped(kv.status());
        const look = lookOf(streamInfo);
        if (this.#replacement.look(look, this.#heard)) this.#doubt();
        const loaded = (): void => {
          this.#heard = Math.max(this.#heard, look.lastRevision);
          this.#dropBefore(DOUBTED + 1);
          onLoaded();
        };
        if (values === 0) loaded();
        for await (const entry of watch) {
          this.#receive(entry);
          if (entry.delta === 0) loaded();
        }
      } catch (error) {
        if (this.#stopped.signal.aborted) return;
        this.#sayEnded(error);
      }
      await delay(WATCH_RETRY_MS, undefined, { signal: this.#stopped.signal }).catch(() => undefined);
    }
  }

  /** A stop that comes before the watch is there finds none to end. */
  #orEnd(watch: Watch): Watch {
    if (this.#stopped.signal.aborted) watch.stop();
    return watch;
  }

  /** A stop waits for no answer. */
  #unlessStopped<A>(answer: Promise<A>): Promise<A> {
    return new Patience({ signal: this.#stopped.signal }).unlessStopped(answer);
  }

  /** Ends the watch when the bucket has had something new for CHECK_MS that the watch did not deliver. */
  async #check(kv: KV): Promise<void> {
    let heardBefore = -1;
    const { signal } = this.#stopped;
    while (!signal.aborted) {
      await delay(CHECK_MS, undefined, { signal }).catch(() => undefined);
      // A server that does not answer is noticed by the connection.
      // What is heard of while it answers is no sign of anything: a bucket with many writers is always a little behind.
      const heardAtAsking = this.#heard;
      const look = await this.#unlessStopped(lookAt(kv)).catch(() => undefined);
      if (look === undefined) continue;
      if (this.#replacement.look(look, heardAtAsking)) this.#doubt();
      else {
        this.#dropBefore(goneBefore(look, this.#heard));
        if (look.lastRevision > this.#heard && this.#heard === heardBefore) this.#watch?.stop();
      }
      heardBefore = this.#heard;
    }
  }

  /**
   * The bucket was made anew and counts from its own beginning again. What is known holds until the watch has brought all
   * that the bucket has: a pause that is in both is never lifted in between.
   */
  #doubt(): void {
    this.#options.logger.warn({ bucket: this.#options.bucket }, 'bucket was replaced');
    for (const [key, { value }] of this.#entries) this.#entries.set(key, { revision: DOUBTED, value });
    this.#heard = 0;
    this.#watch?.stop();
  }

  #dropBefore(firstRevision: number): void {
    const gone = [...this.#entries].filter(([, { revision }]) => revision < firstRevision);
    for (const [key] of gone) this.#entries.delete(key);
    const lost = gone.filter(([, { value }]) => value !== undefined);
    if (lost.length === 0) return;
    this.#options.logger.info({ bucket: this.#options.bucket, records: lost.length }, 'records are gone');
    for (const [key] of lost) for (const listener of this.#listeners) listener(key, undefined);
  }

  #receive(entry: KvWatchEntry): void {
    this.#heard = Math.max(this.#heard, entry.revision);
    this.#read(entry);
  }

  #read(entry: KvEntry): void {
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
    const known = this.#entries.get(key);
    if (revision < (known?.revision ?? 0)) return;
    this.#entries.set(key, { revision, value });
    // The echo of a write that was accepted already is no news.
    if (revision === known?.revision) return;
    for (const listener of this.#listeners) listener(key, value);
  }
}

const lookOf = ({ created, state }: StreamInfo) => ({
  created,
  firstRevision: state.first_seq,
  lastRevision: state.last_seq,
});
const lookAt = async (kv: KV) => lookOf((await kv.status()).streamInfo);

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
