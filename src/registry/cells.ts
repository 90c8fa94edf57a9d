import { setTimeout as delay } from 'node:timers/promises';
import { jetstream } from '@nats-io/jetstream';
import { type KV, Kvm } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { LRUCache } from 'lru-cache';
import { TaskledgerError } from '../domain/errors.ts';
import { isRefusal } from '../log/refusal.ts';

/**
 * A bucket of small values that change often and that few processes look at at a time: changed by compare and set and,
 * unlike in a Mirror, read when needed. What a process knows of a key spares it the read; it may be old, which a refused
 * write tells.
 */
export interface Cells<T> {
  /**
   * Replaces a value by what `build` makes of it, and calls it again when somebody else was faster: nobody's change is
   * lost. The same value writes nothing, and may then be an old one: `fresh` reads it first. Throws `log_unavailable`.
   */
  change(
    key: string,
    build: (current: T | undefined) => T,
    options?: { readonly fresh?: boolean },
  ): Promise<T>;
}

const MAX_CONFLICTS = 20;
/** A replica may lag behind the leader that refused. */
const CONFLICT_PAUSE_MS = 5;
const REMEMBERED = 10_000;

interface Known<T> {
  readonly revision: number;
  readonly value: T | undefined;
}

export function openCells<T>({
  nc,
  bucket,
  parse,
  timeoutMs,
}: {
  readonly nc: NatsConnection;
  readonly bucket: string;
  /** Reads a value, or throws. */
  readonly parse: (value: unknown) => T;
  /** Longest wait for one answer of the server. */
  readonly timeoutMs: number;
}): Cells<T> {
  const memory = new LRUCache<string, Known<T>>({ max: REMEMBERED });
  let opened: Promise<KV> | undefined;
  const open = (): Promise<KV> => {
    opened ??= new Kvm(jetstream(nc, { timeout: timeoutMs })).open(bucket).catch((error: unknown) => {
      opened = undefined;
      throw error;
    });
    return opened;
  };

  async function read(kv: KV, key: string): Promise<Known<T>> {
    const entry = await kv.get(key);
    const known =
      entry === null
        ? { revision: 0, value: undefined }
        : {
            revision: entry.revision,
            value: entry.operation === 'PUT' ? parse(entry.json()) : undefined,
          };
    memory.set(key, known);
    return known;
  }

  async function change(key: string, build: (current: T | undefined) => T, fresh: boolean): Promise<T> {
    const kv = await open();
    let known = fresh ? await read(kv, key) : (memory.get(key) ?? (await read(kv, key)));
    for (let conflicts = 0; conflicts < MAX_CONFLICTS; conflicts += 1) {
      const value = build(known.value);
      if (value === known.value) return value;
      try {
        const revision = await kv.put(key, JSON.stringify(value), { previousSeq: known.revision });
        memory.set(key, { revision, value });
        return value;
      } catch (error) {
        if (!isRefusal(error, 'wrong_revision', 'key_in_flight')) throw error;
      }
      if (conflicts > 0) await delay(CONFLICT_PAUSE_MS * Math.random() * conflicts);
      known = await read(kv, key);
    }
    throw new Error(`others keep changing ${key}`);
  }

  return {
    async change(key, build, { fresh = false } = {}) {
      try {
        return await change(key, build, fresh);
      } catch (cause) {
        memory.delete(key);
        throw new TaskledgerError('log_unavailable', { reason: (cause as Error).message }, { cause });
      }
    },
  };
}
