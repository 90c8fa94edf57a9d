import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { Recorded } from '../domain/events.ts';
import { mayBePardoned } from '../domain/task.ts';
import type { LogBatch, LogReader } from '../log/event-log.ts';
import { Leadership } from '../log/leadership.ts';
import type { OpenedLog } from '../log/open.ts';
import { createLogReader } from '../log/reader.ts';
import type { ServerClock } from '../log/server-clock.ts';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Config } from '../platform/config.ts';
import { Patience } from '../platform/patience.ts';
import type { Service } from '../platform/service.ts';
import { type Fleet, openFleet } from '../registry/fleet.ts';
import { type DispatchSettings, mirrorDispatchSettings } from '../registry/registry.ts';
import { Alarm, type AlarmStats } from './alarm.ts';
import { Answers } from './answers.ts';
import { backlogNotice } from './backlog-notice.ts';
import { ConsumerMaker } from './consumer-maker.ts';
import type { DispatchCore } from './core.ts';
import type { Decision, LineStats, Phase, Woken } from './decisions.ts';
import type { LatenessCounts } from './lateness.ts';
import { stateOf } from './live-task.ts';
import { LogMemory } from './log-memory.ts';
import { NoWorkers, type Unserved } from './no-workers.ts';
import { Performer, type PerformerStats } from './performer.ts';
import { Reconciler } from './reconciler.ts';
import { SnapshotKeeper } from './snapshot/snapshot-keeper.ts';
import { SnapshotStore } from './snapshot/snapshot-store.ts';
import { followTerms } from './terms.ts';
import { WakeTimer } from './wake-timer.ts';

export interface DispatcherParts {
  readonly nc: NatsConnection;
  readonly log: OpenedLog;
  readonly names: Names;
  readonly config: Pick<
    Config,
    | 'dispatchGroup'
    | 'leaderLeaseMs'
    | 'takeoverHoldMs'
    | 'readyWindowMin'
    | 'readyWindowMax'
    | 'readyWindowMs'
    | 'inlinePayloadBytes'
    | 'payloadCacheBytes'
    | 'ackWaitMs'
    | 'hotWindowHours'
    | 'reconcileEveryMs'
    | 'replicas'
    | 'snapshotEveryMs'
    | 'snapshotMinEvents'
  >;
  /** Started with the dispatcher, unless it runs already, and fed by what the dispatcher reads. Every decision is by it. */
  readonly clock: ServerClock;
  readonly logger: Logger;
}

export interface DispatcherStats {
  readonly phase: Phase;
  /** Sequence of the last event folded. */
  readonly position: number;
  readonly liveTasks: number;
  readonly cachedPayloadBytes: number;
  readonly types: Readonly<Record<string, LineStats>>;
  readonly appends: PerformerStats;
  readonly alarm: AlarmStats;
  /** Of the tasks that this leader released, by their due time. */
  readonly lateness: LatenessCounts;
}

export interface Dispatcher extends Service {
  isLeader(): boolean;
  /** Resolves when it leads and has caught up with the log. */
  whenLeader(): Promise<void>;
  /** Wakes what is due and decides. Runs at every due time, and every second for what was missed. */
  runOnce(): Woken;
  stats(): DispatcherStats;
}

/** Large, so that a replay is not spent on bookkeeping; a batch is whatever has arrived. */
const MAX_BATCH = 1_000;
const MEASURE_MS = 100;
const BACKLOG_MS = 250;
const SWEEP_MS = 1_000;
/** A waiting task announces itself again when its last event has used up this part of the hot window. */
const CARRY_AFTER = 0.4;
/** How finely the age of the log's sequences is known, as a part of the hot window. */
const AGE_GRAIN = 1 / 200;
/** How long a task that may not be condemned waits before it is looked at again. */
const SPARE_MS = 15_000;
/** How long `stop` waits for appends; without NATS they would take much longer. */
const STOP_WAIT_MS = 3_000;
const LOOK_AGAIN_MS = 500;
/** Tasks that are woken before the log is read on: they take up to 10 ms. */
const MAX_WOKEN = 2_000;

export const createDispatcher = (parts: DispatcherParts): Dispatcher => new LogDispatcher(parts);

/**
 * Reads the log, keeps DispatchCore's state up to date, and, while it leads, carries out what the core decides. A
 * standby does the same but for deciding, so that it can take over at once.
 *
 * Owner of the core: it is touched only from here and from the performer's callbacks, all on one thread.
 */
class LogDispatcher implements Dispatcher {
  readonly name = 'dispatcher';
  readonly #parts: DispatcherParts;
  readonly #memory: LogMemory;
  readonly #core: DispatchCore;
  readonly #performer: Performer;
  readonly #alarm: Alarm;
  readonly #leadership: Leadership;
  readonly #fleet: Fleet;
  readonly #reconciler: Reconciler;
  readonly #snapshots: SnapshotKeeper;
  readonly #noWorkers: NoWorkers;
  readonly #consumers: ConsumerMaker;
  #unservedNow: readonly Unserved[] = [];
  readonly #settings: DispatchSettings;
  readonly #answers: Answers;
  #reader: LogReader | undefined;
  #intervals: NodeJS.Timeout[] = [];
  readonly #wakeTimer = new WakeTimer(() => this.runOnce());
  #measuredAt = 0;
  readonly #hotWindowMs: number;
  /** Since the last sweep. */
  #expired = 0;
  #leaderWaiters: { resolve(): void; reject(error: Error): void }[] = [];
  #stopping = false;
  readonly #decisions: Decision[] = [];

  constructor(parts: DispatcherParts) {
    const { nc, names, log, clock, logger, config } = parts;
    this.#parts = parts;
    this.#hotWindowMs = config.hotWindowHours * 3_600_000;
    const owner = `dispatcher-${randomUUID()}`;
    this.#memory = new LogMemory(
      {
        window: { min: config.readyWindowMin, max: config.readyWindowMax, ms: config.readyWindowMs },
        inlinePayloadBytes: config.inlinePayloadBytes,
        payloadCacheBytes: config.payloadCacheBytes,
      },
      { ageGrainMs: AGE_GRAIN * this.#hotWindowMs },
    );
    this.#core = this.#memory.core;
    this.#consumers = new ConsumerMaker({ ...parts, core: this.#core });
    this.#snapshots = new SnapshotKeeper({
      ...parts,
      store: new SnapshotStore(parts),
      source: (takenAt) => this.#memory.source(takenAt),
      leads: () => this.isLeader(),
    });
    this.#performer = new Performer({
      log,
      core: this.#core,
      clock,
      actor: { kind: 'dispatcher', id: owner },
      logger,
      inlinePayloadBytes: config.inlinePayloadBytes,
      may: () => this.#leadership.holds(),
      onReturned: () => this.#pump(),
    });
    this.#alarm = new Alarm({
      nc,
      names,
      publisher: log.publisher,
      group: config.dispatchGroup,
      logger,
      onRing: (storedAt) => {
        clock.heard(storedAt);
        if (this.#core.phase !== 'replaying') this.runOnce();
      },
    });
    this.#fleet = openFleet({ nc, names, logger });
    this.#noWorkers = new NoWorkers(this.#fleet, logger);
    this.#reconciler = new Reconciler({
      ...parts,
      fleet: this.#fleet,
      attempts: this.#memory.attempts,
      offered: () => this.#core.offered,
      leads: () => this.isLeader(),
      actor: { kind: 'dispatcher', id: owner },
    });
    this.#answers = new Answers({
      ...parts,
      group: config.dispatchGroup,
      core: this.#core,
      leads: () => this.isLeader(),
    });
    this.#settings = mirrorDispatchSettings({ nc, names, logger });
    this.#leadership = new Leadership({
      nc,
      bucket: names.buckets.leaders,
      key: `dispatcher.${config.dispatchGroup}`,
      owner,
      leaseMs: config.leaderLeaseMs,
      logger,
      onChange: (leads, inherited) => this.#onLeadership(leads, inherited),
    });
  }

  /** Resolves when it has read the log up to where it stood, and has tried once to lead. */
  async start(patience = new Patience()): Promise<void> {
    if (this.#reader !== undefined || this.#stopping) return;
    const { nc, names, log, logger } = this.#parts;
    await this.#parts.clock.start(patience);
    await this.#alarm.start(patience);
    await this.#fleet.start(patience);
    await this.#settings.start(patience);
    followTerms(this.#settings, {
      terms: this.#core.terms,
      now: () => this.#parts.clock.now(),
      onChange: () => {
        if (this.#core.phase !== 'replaying') this.#pump();
      },
    });
    const startedAt = performance.now();
    await patience.unlessStopped(this.#leadership.look());
    const snapshot = await patience.unlessStopped(this.#snapshots.find());
    if (snapshot !== undefined) this.#memory.restore(snapshot);
    const { firstSeq, lastSeq } = await patience.waitFor('the end of the log', () => log.bounds());
    this.#reader = createLogReader(
      { nc, names, logger },
      {
        fromSeq: Math.max(1, firstSeq, this.#core.position + 1),
        maxBatch: MAX_BATCH,
        gatherMs: 0,
        onBatch: (batch) => this.#onBatch(batch),
      },
    );
    await patience.unlessStopped(this.#reader.start());
    await patience.unlessStopped(this.#reader.whenReached(lastSeq));
    logger.info(
      {
        snapshot: snapshot?.header.position,
        lastSeq,
        liveTasks: this.#core.size,
        ms: Math.round(performance.now() - startedAt),
      },
      'the log is replayed',
    );
    this.#core.enter('following');
    this.#measuredAt = performance.now();
    await this.#answers.start();
    this.#intervals = [
      setInterval(() => this.#measure(), MEASURE_MS),
      setInterval(() => this.#announce(), BACKLOG_MS),
      setInterval(() => this.#sweep(), SWEEP_MS),
    ];
    this.runOnce();
    await this.#leadership.start(patience);
    await this.#reconciler.start();
    await this.#snapshots.start();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    for (const interval of this.#intervals.splice(0)) clearInterval(interval);
    this.#wakeTimer.stop();
    await this.#answers.stop();
    // What is under way counts against limits: whoever leads next must find it in the log, or know that it may still arrive.
    this.#core.enter('following');
    await this.#performer.whenIdle(STOP_WAIT_MS);
    if (this.#performer.stats().underWay > 0) this.#leadership.keepUntilItEnds();
    await this.#leadership.stop();
    await this.#snapshots.stop();
    await this.#reconciler.stop();
    await this.#fleet.stop();
    await this.#reader?.stop();
    await this.#alarm.stop();
    await this.#settings.stop();
    for (const waiter of this.#leaderWaiters.splice(0)) waiter.reject(new TaskledgerError('shutting_down'));
  }

  isLeader(): boolean {
    return this.#core.phase === 'leading' && this.#leadership.holds();
  }

  whenLeader(): Promise<void> {
    if (this.isLeader()) return Promise.resolve();
    return new Promise((resolve, reject) => this.#leaderWaiters.push({ resolve, reject }));
  }

  runOnce(): Woken {
    const woken = this.#core.advance(this.#parts.clock.now(), MAX_WOKEN);
    this.#expired += woken.expired;
    this.#pump();
    return woken;
  }

  stats(): DispatcherStats {
    return {
      phase: this.#core.phase,
      position: this.#core.position,
      liveTasks: this.#core.size,
      cachedPayloadBytes: this.#core.cachedBytes,
      types: this.#core.stats(),
      appends: this.#performer.stats(),
      alarm: this.#alarm.stats(),
      lateness: this.#core.lateness.told(),
    };
  }

  #onBatch({ events, unreadable }: LogBatch): void {
    for (const recorded of events) this.#observe(recorded);
    const newest = events.at(-1);
    if (newest !== undefined) this.#parts.clock.heard(newest.storedAt);
    for (const { seq, reason } of unreadable)
      this.#parts.logger.error({ seq, reason }, 'an event cannot be read; its task may be stuck');
    if (this.#core.phase !== 'replaying') this.#pump();
  }

  /** One event that makes no sense must not hold up all others. */
  #observe(recorded: Recorded): void {
    try {
      this.#memory.observe(recorded);
    } catch (error) {
      this.#parts.logger.error(
        { seq: recorded.seq, taskId: recorded.event.taskId, error },
        'an event cannot be folded; its task may be stuck',
      );
    }
  }

  /** Carries out what the core wants done. */
  #pump(): void {
    if (this.#stopping) return;
    // A leader whose lease has run out unheard of waits for leadership's word: renewed after all, or lost.
    if (this.isLeader()) this.#carryOut();
    this.#armWake();
  }

  #carryOut(): void {
    this.#consumers.make();
    this.#core.decide(this.#decisions, this.#parts.clock.now());
    for (const decision of this.#decisions.splice(0))
      if (!this.#spared(decision)) this.#performer.perform(decision);
  }

  /** A task whose attempts ended in lost leases all over the fleet is not condemned meanwhile, and tried again after. */
  #spared({ kind, task, seq }: Decision): boolean {
    if (kind !== 'dead_letter' || !this.#memory.outage.condemned({ tenant: task.tenant, taskId: task.id }))
      return false;
    if (!task.known || !mayBePardoned(stateOf(task, undefined))) return false;
    const now = this.#parts.clock.now();
    if (this.#memory.outage.dominates(now)) this.#core.unresolved(task, seq, now + SPARE_MS);
    else this.#core.forgive(task, now);
    return true;
  }

  #onLeadership(leads: boolean, inherited: boolean): void {
    this.#alarm.forget();
    if (leads) void this.#takeOver(inherited);
    else this.#core.enter('following');
  }

  /** The former leader may have appended until a moment ago: decide only when all of it is folded, or limits are exceeded. */
  async #takeOver(inherited: boolean): Promise<void> {
    const { clock, config, logger, log } = this.#parts;
    if (inherited) this.#core.terms.holdLimited(clock.now() + config.takeoverHoldMs, clock.now());
    for (let seen = false; !seen; ) {
      if (this.#stopping || !this.#leadership.holds()) return;
      try {
        const { lastSeq } = await log.bounds();
        await this.#reader?.whenReached(lastSeq);
        seen = true;
      } catch (error) {
        logger.warn({ error: String(error) }, 'the end of the log is not known yet; looking again');
        await delay(LOOK_AGAIN_MS);
      }
    }
    if (this.#stopping || !this.#leadership.holds()) return;
    this.#core.enter('leading');
    this.runOnce();
    for (const waiter of this.#leaderWaiters.splice(0)) waiter.resolve();
  }

  /** Every second: what was missed, and what should be known of it. */
  #sweep(): void {
    this.#consumers.retry();
    const aging = this.#ageTasks();
    this.#unservedNow = this.isLeader()
      ? this.#noWorkers.look(this.#core.waitingLines(), performance.now())
      : [];
    this.runOnce();
    if (aging > 0)
      this.#parts.logger.info({ aging }, 'tasks wait so long that they announce themselves again');
    const expired = this.#expired;
    this.#expired = 0;
    if (this.isLeader() && expired > 0)
      this.#parts.logger.info({ expired }, 'ended tasks past their deadline');
  }

  /** Rule 5, for the tasks that nobody else drives. */
  #ageTasks(): number {
    if (!this.isLeader()) return 0;
    const oldestAt = this.#parts.clock.now() - CARRY_AFTER * this.#hotWindowMs;
    const seq = this.#memory.age.takeUntil(oldestAt);
    if (seq === undefined) return 0;
    this.#reconciler.age(seq);
    return this.#core.age(seq);
  }

  #measure(): void {
    const now = performance.now();
    this.#core.measure(Math.max(1, now - this.#measuredAt));
    this.#measuredAt = now;
    this.#pump();
  }

  #announce(): void {
    if (!this.isLeader() || this.#parts.nc.isClosed()) return;
    const notice = backlogNotice(this.#core, this.#unservedNow);
    this.#parts.nc.publish(this.#parts.names.backlog, JSON.stringify(notice));
  }

  /** Sets the timer and the alarm for the core's next waking. */
  #armWake(): void {
    const wakeAt = this.#core.nextWakeAt();
    const now = this.#parts.clock.now();
    if (this.isLeader()) this.#alarm.set(wakeAt, now);
    this.#wakeTimer.set(wakeAt, now);
  }
}
