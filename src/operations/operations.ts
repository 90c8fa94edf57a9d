import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { Actor } from '../domain/events.ts';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import type { Patience } from '../platform/patience.ts';
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

export const openOperations = (parts: OperationsParts): Operations => new KvOperations(parts);

class KvOperations implements Operations {
  readonly name = 'operations';
  readonly #clock: Clock;
  readonly #mirror: Mirror<Operation>;

  constructor({ nc, names, clock, logger }: OperationsParts) {
    this.#clock = clock;
    this.#mirror = createMirror({
      nc,
      bucket: names.buckets.operations,
      logger,
      parse: (value) => OperationSchema.parse(value),
    });
  }

  start(patience?: Patience): Promise<void> {
    return this.#mirror.start(patience);
  }

  stop(): Promise<void> {
    return this.#mirror.stop();
  }

  async begin(wanted: NewOperation): Promise<Operation> {
    const operation = OperationSchema.parse(begun(randomUUID(), wanted, this.#clock.now()));
    await this.#mirror.put(operation.id, operation);
    return operation;
  }

  get(id: string): Promise<Operation | undefined> {
    return this.#mirror.read(id);
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
      const changed = controlled(current, { wish, actor, now: this.#clock.now() });
      if (!changed.ok) throw changed.error;
      return changed.value;
    });
  }

  async change(id: string, build: (current: Operation) => Operation): Promise<Operation> {
    // The mirror may be a moment behind, and what changes nothing there is never compared with the bucket.
    const known = await this.#mirror.read(id);
    const changed =
      known &&
      (await this.#mirror.change(id, (current) => (current === undefined ? current : build(current))));
    if (changed === undefined) throw new TaskledgerError('operation_not_found', { operationId: id });
    return changed;
  }

  onChange(listener: () => void): void {
    this.#mirror.onChange(listener);
  }
}
