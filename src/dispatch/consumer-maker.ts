import type { NatsConnection } from '@nats-io/transport-node';
import { ensureWorkConsumer } from '../log/streams.ts';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Config } from '../platform/config.ts';
import type { DispatchCore } from './core.ts';

interface ConsumerMakerParts {
  readonly nc: NatsConnection;
  readonly names: Names;
  readonly config: Pick<Config, 'ackWaitMs'>;
  readonly core: Pick<DispatchCore, 'lineCount' | 'lines' | 'workFrom'>;
  readonly logger: Logger;
}

/** Sees to it that the workers of every type and version find their consumer. */
export class ConsumerMaker {
  readonly #parts: ConsumerMakerParts;
  /** Lines whose consumer exists or is being made. */
  readonly #made = new Set<string>();
  /** Lines whose consumer could not be made. */
  readonly #failed = new Set<string>();

  constructor(parts: ConsumerMakerParts) {
    this.#parts = parts;
  }

  /** Begins to make those that are missing; costs nothing when none is. */
  make(): void {
    const { core, logger } = this.#parts;
    if (this.#made.size === core.lineCount) return;
    for (const { type, version, key } of core.lines) {
      if (this.#made.has(key)) continue;
      this.#made.add(key);
      const fromSeq = (): number => core.workFrom(type, version);
      ensureWorkConsumer(this.#parts, type, { version, fromSeq }).catch((error: unknown) => {
        this.#failed.add(key);
        logger.error({ type, version, error: String(error) }, 'the work consumer cannot be made');
      });
    }
  }

  /** The next `make` tries those again that could not be made. */
  retry(): void {
    for (const key of this.#failed) this.#made.delete(key);
    this.#failed.clear();
  }
}
