import { TaskledgerError } from '../../domain/errors.ts';
import type { Recorded } from '../../domain/events.ts';
import type { Logger } from '../../observe/log.ts';
import type { Clock } from '../../platform/clock.ts';
import type { Config } from '../../platform/config.ts';
import type { Service } from '../../platform/service.ts';
import { damaged } from './blocks.ts';
import { decodeSnapshot, encodeSnapshot, type Snapshot, type SnapshotSource } from './format.ts';
import type { SnapshotStore, StoredSnapshot } from './snapshot-store.ts';

export interface SnapshotKeeperParts {
  readonly store: Pick<SnapshotStore, 'list' | 'read' | 'write'>;
  readonly log: { readEvent(seq: number): Promise<Recorded | undefined> };
  readonly source: (takenAt: number) => SnapshotSource;
  /** A leader leaves it to a standby while there is one. */
  readonly leads: () => boolean;
  readonly config: Pick<Config, 'snapshotEveryMs' | 'snapshotMinEvents'>;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** How much longer a leader waits for a standby to write one. */
const LEADER_PATIENCE = 2;
/** At most this part of the time is spent on writing. */
const MOST_OF_THE_TIME = 0.1;
const LOOKS_IN_A_PERIOD = 5;

/**
 * Writes snapshots of a dispatcher's memory, and finds the last one that can be used. Nothing depends on them but time:
 * what cannot be read is passed over, and without any the log is read from the beginning.
 *
 * Whoever is due looks first whether another dispatcher has written one meanwhile.
 */
export class SnapshotKeeper implements Service {
  readonly name = 'snapshot keeper';
  readonly #parts: SnapshotKeeperParts;
  /** Position of the last snapshot known, whoever wrote it, and when it was heard of (monotonic ms). */
  #position = 0;
  #since = 0;
  /** Not before (monotonic ms). */
  #restUntil = 0;
  #timer: NodeJS.Timeout | undefined;
  #stopped = true;

  constructor(parts: SnapshotKeeperParts) {
    this.#parts = parts;
  }

  async start(): Promise<void> {
    if (!this.#stopped) return;
    this.#stopped = false;
    this.#since = performance.now();
    this.#schedule();
  }

  /** Gives up one that is being written, and does not wait for that. */
  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  /** The latest snapshot that is whole and belongs to this log. */
  async find(): Promise<Snapshot | undefined> {
    const { store, logger } = this.#parts;
    let stored: readonly StoredSnapshot[] = [];
    try {
      stored = await store.list();
    } catch (error) {
      logger.warn({ error: String(error) }, 'the snapshots cannot be listed; the log is read instead');
    }
    for (const one of stored) {
      try {
        const snapshot = await decodeSnapshot(store.read(one));
        await this.#check(snapshot);
        this.#position = snapshot.header.position;
        return snapshot;
      } catch (error) {
        logger.warn({ snapshot: one.name, reason: String(error) }, 'a snapshot is passed over');
      }
    }
    return undefined;
  }

  /** Writes one if it is due. True when it did. */
  async runOnce(): Promise<boolean> {
    const { source, store, clock, logger, leads } = this.#parts;
    if (performance.now() < this.#restUntil || !this.#isDue(source(0).position)) return false;
    const [latest] = await store.list();
    if (latest !== undefined && latest.position > this.#position) {
      this.#position = latest.position;
      this.#since = performance.now();
    } else if (latest === undefined) this.#position = 0;
    const from = source(clock.now());
    const { position } = from;
    if (this.#stopped || !this.#isDue(position)) return false;
    const startedAt = performance.now();
    const bytes = await store.write(this.#untilStopped(encodeSnapshot(from)), position);
    const now = performance.now();
    this.#position = position;
    this.#since = now;
    this.#restUntil = now + (now - startedAt) / MOST_OF_THE_TIME;
    logger.info(
      { position, bytes, ms: Math.round(now - startedAt), leads: leads() },
      'a snapshot of the memory is written',
    );
    return true;
  }

  *#untilStopped(blocks: Iterable<Buffer>): Generator<Buffer> {
    for (const block of blocks) {
      if (this.#stopped) throw new TaskledgerError('shutting_down');
      yield block;
    }
  }

  #isDue(position: number): boolean {
    const { config, leads } = this.#parts;
    const patience = leads() ? LEADER_PATIENCE : 1;
    return (
      position - this.#position >= config.snapshotMinEvents &&
      performance.now() - this.#since >= patience * config.snapshotEveryMs
    );
  }

  /**
   * The event that it was taken at is still in the log: so it is the same log, and no event is missing between the two.
   */
  async #check({ header: { position, eventId } }: Snapshot): Promise<void> {
    const last = await this.#parts.log.readEvent(position);
    if (last === undefined) throw damaged(`the log no longer has the event ${position} that it was taken at`);
    if (last.event.id !== eventId) throw damaged('it was taken from another log');
  }

  #schedule(): void {
    if (this.#stopped) return;
    this.#timer = setTimeout(() => {
      void this.#look().finally(() => this.#schedule());
    }, this.#parts.config.snapshotEveryMs / LOOKS_IN_A_PERIOD);
  }

  async #look(): Promise<void> {
    try {
      await this.runOnce();
    } catch (error) {
      if (!this.#stopped) this.#parts.logger.warn({ error: String(error) }, 'no snapshot could be written');
    }
  }
}
