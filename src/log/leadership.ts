import { setTimeout as delay } from 'node:timers/promises';
import { jetstream } from '@nats-io/jetstream';
import { type KV, type KvEntry, Kvm } from '@nats-io/kv';
import type { NatsConnection } from '@nats-io/transport-node';
import type { Logger } from '../observe/log.ts';
import { Nap } from '../platform/nap.ts';
import { Patience, sparingly } from '../platform/patience.ts';
import type { Service } from '../platform/service.ts';
import { isRefusal } from './refusal.ts';
import { orUnavailable } from './unavailable.ts';

export interface LeadershipParts {
  readonly nc: NatsConnection;
  readonly bucket: string;
  /** What is led, e.g. `dispatcher.default`. */
  readonly key: string;
  /** Names this candidate; different for every incarnation. */
  readonly owner: string;
  readonly leaseMs: number;
  readonly logger: Logger;
  /** Called on every change; also on `stop` when it led. `inherited`: somebody else led before, and did not give the lead back. */
  onChange(leads: boolean, inherited: boolean): void;
}

/** Renewals and looks in one lease: two may fail before anything happens. */
const PASSES = 3;
/** Servers in an election drop a request without a word: no longer is waited for an answer, and then soon asked again. */
const ANSWER_MS = 1_000;
const AGAIN_MS = 250;
const WATCH_RETRY_MS = 500;

/**
 * One leader among candidates, by a lease on a key of a bucket.
 *
 *   standby -> leader     the key is free or its own, or its revision has not changed for a lease
 *   leader  -> standby    another revision than its own is there, or it could not renew for a lease
 *
 * Nobody compares clocks: a standby measures by its own monotonic clock since it last saw the revision change, a leader
 * since it sent its last successful renewal. Two leaders for a moment are harmless to the log (rule 1).
 */
export class Leadership implements Service {
  readonly name: string;
  readonly #parts: LeadershipParts;
  #kv: KV | undefined;
  #leads = false;
  /** Leader: the revision it wrote. Standby: the last revision seen. */
  #revision = 0;
  /** Standby: when the revision was first seen; leader: when the last successful renewal was sent (performance clock). */
  #since = 0;
  #stopping = false;
  #loop: Promise<void> | undefined;
  #watch: Awaited<ReturnType<KV['watch']>> | undefined;
  readonly #nap = new Nap();
  /** The key was seen to become free. */
  #released = false;
  /** The last pass has not come to its end. */
  #undone = false;
  #givesBack = true;
  readonly #sayTrouble: (error: unknown) => void;

  constructor(parts: LeadershipParts) {
    const { key, logger } = parts;
    this.#parts = parts;
    this.name = `leadership of ${key}`;
    this.#sayTrouble = sparingly((error) =>
      logger.warn({ key, error: String(error) }, 'the lead cannot be looked after; trying again'),
    );
  }

  /** Whether it leads at this moment; false as soon as the lease has run out, heard of or not. */
  holds(): boolean {
    return this.#leads && performance.now() - this.#since < this.#parts.leaseMs;
  }

  /**
   * Looks who leads, before one can lead oneself: a lease that is not renewed from now on is waited for no longer when
   * the time to `start` has come.
   */
  async look(): Promise<void> {
    try {
      await this.#opened();
      const entry = await this.#entry();
      if (entry === undefined) return;
      this.#revision = entry.revision;
      this.#since = performance.now();
    } catch (error) {
      this.#sayTrouble(error);
    }
  }

  /** Resolves after the first try to lead. */
  async start(patience = new Patience()): Promise<void> {
    if (this.#loop !== undefined || this.#stopping) return;
    await patience.waitFor(this.name, () => orUnavailable(() => this.#opened()));
    void this.#watchReleases();
    await this.runOnce();
    this.#loop = this.#run();
  }

  /** `stop` will not give the key back: a standby waits for the lease to end, and knows why. */
  keepUntilItEnds(): void {
    this.#givesBack = false;
  }

  /** Gives the key back, so that a standby takes over at once. */
  async stop(): Promise<void> {
    this.#stopping = true;
    this.#nap.wake();
    this.#watch?.stop();
    await this.#loop;
    if (!this.#leads) return;
    this.#follow('stopped');
    if (this.#parts.nc.isClosed() || !this.#givesBack) return;
    await this.#kv?.delete(this.#parts.key, { previousSeq: this.#revision }).catch((error: unknown) => {
      this.#parts.logger.warn({ key: this.#parts.key, error: String(error) }, 'the lead was not given back');
    });
  }

  async runOnce(): Promise<void> {
    this.#undone = false;
    try {
      if (this.#leads) await this.#renew();
      else await this.#tryToLead();
    } catch (error) {
      this.#undone = true;
      this.#sayTrouble(error);
    }
    if (this.#leads && !this.holds()) this.#follow('not renewed in time');
  }

  async #run(): Promise<void> {
    while (!this.#stopping && !this.#parts.nc.isClosed()) {
      await this.#pause();
      if (!this.#stopping) await this.runOnce();
    }
    if (this.#leads && this.#parts.nc.isClosed()) this.#follow('the connection is closed');
  }

  async #renew(): Promise<void> {
    const sentAt = performance.now();
    try {
      this.#revision = await this.#write(this.#revision);
      this.#since = sentAt;
    } catch (error) {
      if (!isRefusal(error, 'wrong_revision')) throw error;
      const entry = await this.#entry();
      if (entry === undefined || ownerOf(entry) !== this.#parts.owner) {
        this.#follow('another one leads');
        return;
      }
      // An earlier renewal was stored without our hearing of it; this one was not.
      this.#revision = entry.revision;
      this.#undone = true;
    }
  }

  async #tryToLead(): Promise<void> {
    // What a release says is newer than what a replica may answer.
    const entry = this.#released ? undefined : await this.#entry();
    this.#released = false;
    const now = performance.now();
    if (entry !== undefined && entry.revision !== this.#revision) {
      this.#revision = entry.revision;
      this.#since = now;
    }
    // One's own lease that ran out while the server could not be reached is taken up again at once.
    const held = entry !== undefined && ownerOf(entry) !== this.#parts.owner;
    if (held && now - this.#since < this.#parts.leaseMs) return;
    try {
      this.#revision = await (entry === undefined ? this.#create() : this.#write(entry.revision));
    } catch (error) {
      if (isRefusal(error, 'wrong_revision')) return;
      throw error;
    }
    this.#leads = true;
    this.#since = now;
    this.#parts.logger.info({ key: this.#parts.key, owner: this.#parts.owner }, 'leading');
    this.#parts.onChange(true, held);
  }

  #follow(reason: string): void {
    this.#leads = false;
    this.#revision = 0;
    this.#parts.logger.info({ key: this.#parts.key, owner: this.#parts.owner, reason }, 'no longer leading');
    this.#parts.onChange(false, false);
  }

  async #entry(): Promise<KvEntry | undefined> {
    const entry = await this.#kv?.get(this.#parts.key);
    return entry?.operation === 'PUT' ? entry : undefined;
  }

  #write(revision: number): Promise<number> {
    return this.#open().update(this.#parts.key, this.#parts.owner, revision);
  }

  #create(): Promise<number> {
    return this.#open().create(this.#parts.key, this.#parts.owner);
  }

  async #opened(): Promise<KV> {
    const { nc, bucket, leaseMs } = this.#parts;
    const timeout = Math.min(ANSWER_MS, Math.ceil(leaseMs / PASSES));
    this.#kv ??= await new Kvm(jetstream(nc, { timeout })).open(bucket);
    return this.#kv;
  }

  #open(): KV {
    if (this.#kv === undefined) throw new Error('leadership was not started');
    return this.#kv;
  }

  /** How long until the next pass is due. A standby is awake when the lease it watches ends. */
  #nextPassMs(): number {
    const { leaseMs } = this.#parts;
    const passMs = Math.ceil(leaseMs / PASSES);
    if (this.#undone) return Math.min(AGAIN_MS, passMs);
    const leftMs = Math.ceil(this.#since + leaseMs - performance.now());
    return this.#leads || leftMs <= 0 ? passMs : Math.min(passMs, leftMs);
  }

  /** Until the next pass is due, the key is released, or the service stops. */
  async #pause(): Promise<void> {
    if (!this.#stopping && !this.#released) await this.#nap.take(this.#nextPassMs());
  }

  /** Without the watch a release is noticed when the lease has run out. */
  async #watchReleases(): Promise<void> {
    const { key } = this.#parts;
    while (!this.#stopping) {
      try {
        this.#watch = await this.#open().watch({ key, ignoreDeletes: false });
        // A stop during the await found no watch to end.
        if (this.#stopping) this.#watch.stop();
        for await (const entry of this.#watch) {
          if (entry.operation === 'PUT' || this.#leads) continue;
          this.#released = true;
          this.#nap.wake();
        }
      } catch (error) {
        if (!this.#stopping) this.#sayTrouble(error);
      }
      await delay(WATCH_RETRY_MS, undefined, { ref: false });
    }
  }
}

const ownerOf = (entry: KvEntry): string => entry.string();
