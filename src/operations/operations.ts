import { randomUUID } from 'node:crypto';
import { JetStreamApiError } from '@nats-io/jetstream';
import { type KV, Kvm } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { Actor } from '../domain/events.ts';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import type { Service } from '../platform/service.ts';
import { createMirror, type Mirror } from '../registry/mirror.ts';
import {
  begun,
  controlled,
  type NewOperation,
  type Operation,
  OperationSchema,
  type Wish,
} from './operation.ts';

/** The bulk operations of the installation: a bucket that every API process sees. They are kept for 90 days after their last change. */
export interface Operations extends Service {
  /** Stored when it resolves; a runner takes it up at once. Throws `log_unavailable`. */
  begin(wanted: NewOperation): Promise<Operation>;
  /** As it is stored at this moment. Throws `log_unavailable`. */
  get(id: string): Promise<Operation | undefined>;
  /** Newest first, a moment behind. */
  list(of: { kind: string; tenant: string | undefined }): readonly Operation[];
  /** Those with work left, oldest first, a moment behind. */
  running(): readonly Operation[];
  /** Throws `operation_not_found`, `operation_ended` or `log_unavailable`. */
  control(id: string, wish: Wish, actor: Actor): Promise<Operation>;
  /** Replaces it by what `build` makes of it; `build` is called again when somebody else was faster. */
  change(id: string, build: (current: Operation) => Operation): Promise<Operation>;
  onChange(listener: () => void): void;
}

interface OperationsParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** The server's answers to a write whose expected revision is not the last one, or may not be. */
const WRONG_REVISION: ReadonlySet<number> = new Set([10_071, 10_164]);
/** Changes of others in a row after which the caller is told to try again. */
const MAX_CONFLICTS = 20;

export const openOperations = (parts: OperationsParts): Operations => new KvOperations(parts);

class KvOperations implements Operations {
  readonly name = 'operations';
  readonly #parts: OperationsParts;
  readonly #mirror: Mirror<Operation>;
  #kv: KV | undefined;

  constructor(parts: OperationsParts) {
    this.#parts = parts;
    this.#mirror = createMirror({
      nc: parts.nc,
      bucket: parts.names.buckets.operations,
      logger: parts.logger,
      parse: (value) => OperationSchema.parse(value),
    });
  }

  async start(): Promise<void> {
    this.#kv = await new Kvm(this.#parts.nc).open(this.#parts.names.buckets.operations);
    await this.#mirror.start();
  }

  stop(): Promise<void> {
    return this.#mirror.stop();
  }

  async begin(wanted: NewOperation): Promise<Operation> {
    const operation = OperationSchema.parse(begun(randomUUID(), wanted, this.#parts.clock.now()));
    await this.#ask((kv) => kv.create(operation.id, JSON.stringify(operation)));
    return operation;
  }

  async get(id: string): Promise<Operation | undefined> {
    return (await this.#read(id))?.operation;
  }

  list({ kind, tenant }: { kind: string; tenant: string | undefined }): readonly Operation[] {
    return this.#mirror
      .values()
      .filter((each) => each.kind === kind && (tenant === undefined || each.tenant === tenant))
      .sort((a, b) => (a.createdAt < b.createdAt ? 1 : -1));
  }

  running(): readonly Operation[] {
    return this.#mirror
      .values()
      .filter(({ state }) => state === 'running')
      .sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
  }

  control(id: string, wish: Wish, actor: Actor): Promise<Operation> {
    return this.change(id, (current) => {
      const changed = controlled(current, { wish, actor, now: this.#parts.clock.now() });
      if (!changed.ok) throw changed.error;
      return changed.value;
    });
  }

  async change(id: string, build: (current: Operation) => Operation): Promise<Operation> {
    for (let conflicts = 0; conflicts < MAX_CONFLICTS; conflicts += 1) {
      const found = await this.#read(id);
      if (found === undefined) throw new TaskledgerError('operation_not_found', { operationId: id });
      const changed = build(found.operation);
      if (changed === found.operation) return changed;
      if (await this.#replace(changed, found.revision)) return changed;
    }
    throw new TaskledgerError('log_unavailable', { reason: `operation ${id} keeps being changed` });
  }

  onChange(listener: () => void): void {
    this.#mirror.onChange(listener);
  }

  async #read(id: string): Promise<{ operation: Operation; revision: number } | undefined> {
    const entry = await this.#ask((kv) => kv.get(id));
    if (entry?.operation !== 'PUT') return undefined;
    return { operation: OperationSchema.parse(entry.json()), revision: entry.revision };
  }

  /** False when somebody else has changed it. */
  async #replace(operation: Operation, revision: number): Promise<boolean> {
    return this.#ask(async (kv) => {
      try {
        await kv.update(operation.id, JSON.stringify(operation), revision);
        return true;
      } catch (error) {
        if (error instanceof JetStreamApiError && WRONG_REVISION.has(error.code)) return false;
        throw error;
      }
    });
  }

  async #ask<T>(question: (kv: KV) => Promise<T>): Promise<T> {
    if (this.#kv === undefined)
      throw new TaskledgerError('log_unavailable', { reason: 'operations are not started' });
    try {
      return await question(this.#kv);
    } catch (cause) {
      throw new TaskledgerError('log_unavailable', { reason: (cause as Error).message }, { cause });
    }
  }
}
