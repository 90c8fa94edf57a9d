import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import { type OpenedLog, openLog } from '../log/open.ts';
import { clockOfServers } from '../log/server-clock.ts';
import { names as namesOf } from '../log/subjects.ts';
import type { Clock } from '../platform/clock.ts';
import { connectPatiently } from '../platform/nats.ts';
import { type NatsWatch, watchNats } from '../platform/nats-watch.ts';
import { Patience, sparingly } from '../platform/patience.ts';
import type { Service } from '../platform/service.ts';
import { within } from '../platform/within.ts';
import { Admission } from './admission.ts';
import type { Attempt } from './attempt.ts';
import { type Bench, handBack } from './bench.ts';
import type { Delivery } from './delivery.ts';
import { executeAttempt } from './execute-attempt.ts';
import { Feed, recheck } from './feed.ts';
import { createWorkerHealth } from './health.ts';
import { newCounters, type WorkerStats } from './hooks.ts';
import { identityOf } from './identity.ts';
import { LeaseKeeper } from './lease-keeper.ts';
import { planOf, type WorkerOptions, type WorkerPlan } from './options.ts';
import { Pull } from './pull.ts';
import { guarded } from './report.ts';
import { installationOf } from './spool/installation.ts';
import { openSpooling, type Spooling } from './spool/spooling.ts';
import { hearStrayRejections } from './stray-rejections.ts';
import { ensureConsumers, linesOf, type WorkLine } from './work-consumers.ts';
import { WorkSource } from './work-source.ts';
import { entrySubject, WorkerRegistry } from './worker-registry.ts';

/**
 * Runs tasks. `start` resolves when work can arrive. `stop` takes no more work, hands back what it has not begun,
 * waits for running attempts up to `shutdownGraceMs`, then aborts them; those that do not end are given back. A worker
 * that has stopped does not start again: `start` throws `shutting_down`.
 */
export interface Worker extends Service {
  /** This incarnation: the actor id of its events. */
  readonly id: string;
  /** Like `stop`, but waits for running attempts however long they take. A `stop` during it ends the patience. */
  drain(): Promise<void>;
  /** What it has done since it was made; may be asked at any time, also after `stop`. */
  stats(): WorkerStats;
  /** Resolves when nothing runs here at the moment; at once when nothing does. */
  whenIdle(): Promise<void>;
}

/**
 * A worker that takes no work before `start()`. Throws `name_invalid` or `config_invalid` at once; `start` throws
 * `nats_unreachable` and `log_unavailable`.
 *
 * @example
 * import { createWorker } from 'taskledger';
 *
 * const worker = createWorker({
 *   types: { greet: ({ payload }) => ({ greeting: `Hello, ${String(payload)}` }) },
 *   concurrency: 20,
 * });
 * await worker.start();
 * process.once('SIGTERM', () => void worker.stop());
 */
export function createWorker(options: WorkerOptions): Worker {
  return new TaskWorker(planOf(options));
}

/** What is there between start and stop. */
interface Running {
  readonly nc: NatsConnection;
  readonly log: OpenedLog;
  readonly clock: Clock & Service;
  readonly leases: LeaseKeeper;
  readonly feed: Feed;
  readonly source: WorkSource;
  readonly spooling: Spooling;
  readonly health: Service;
  readonly stopHearing: () => void;
}

/** How long outcomes may take to be stored after the last handler was given up. */
const LAST_SETTLE_MS = 2_000;

/** The longest interval that a timer can have. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** How long a stopping worker waits for a server that does not answer. */
const FLUSH_MS = 2_000;
/** After which a work item that came to a worker that takes none is delivered again. */
const HELD_MS = 1_000;
/** The same for one that was not begun because the log did not answer. */
const UNANSWERED_MS = 1_000;

/** Modes: made -> starting -> running -> ending -> stopped. Starting may fail, which stops it. */
class TaskWorker implements Worker {
  readonly name = 'worker';
  readonly id: string;
  readonly #plan: WorkerPlan;
  readonly #counters = newCounters();
  readonly #active = new Map<string, Attempt>();
  readonly #admission: Admission;
  #bench: Bench | undefined;
  #running: Running | undefined;
  #starting: Promise<void> | undefined;
  #ending: Promise<void> | undefined;
  readonly #stopAsked = new AbortController();
  #patience: NodeJS.Timeout | undefined;
  #abandoned = false;

  constructor(plan: WorkerPlan) {
    this.#plan = plan;
    this.id = plan.id;
    const { total, byType } = plan;
    this.#admission = new Admission({
      total,
      byType,
      begin: (delivery) => void this.#run(delivery),
      handBack: (delivery) => {
        if (this.#bench !== undefined) handBack(this.#bench, delivery);
      },
    });
  }

  async start(): Promise<void> {
    if (this.#ending !== undefined) throw new TaskledgerError('shutting_down');
    this.#starting ??= this.#start();
    await this.#starting;
  }

  stop(): Promise<void> {
    this.#losePatienceIn(this.#plan.shutdownGraceMs);
    return this.#end();
  }

  drain(): Promise<void> {
    return this.#end();
  }

  stats(): WorkerStats {
    return { running: this.#admission.running, ...this.#counters };
  }

  whenIdle(): Promise<void> {
    return this.#admission.whenIdle();
  }

  async #start(): Promise<void> {
    const { config, connection, id, runnables, total, logger } = this.#plan;
    const names = namesOf(config.prefix);
    const undo: (() => unknown)[] = [];
    let connected = connection;
    let natsWatch: NatsWatch | undefined;
    let spooling: Spooling | undefined;
    const health = createWorkerHealth({
      config,
      names,
      runnables,
      nc: () => connected,
      natsTrouble: () => (connected === undefined ? 'not connected yet' : natsWatch?.trouble()),
      stats: () => this.stats(),
      problem: () => spooling?.problem,
      logger,
    });
    undo.push(() => health.stop());
    try {
      await health.start();
      const patience = this.#patienceAtStart();
      const nc = connection ?? (await connectPatiently(config, id, patience));
      if (connection === undefined) undo.push(() => nc.close());
      connected = nc;
      natsWatch = watchNats(nc, logger);
      const { ackWaitMs } = this.#plan;
      const lines = linesOf(runnables);
      const ackWaits = await patience.unlessStopped(
        ensureConsumers({ nc, names, ackWaitMs, config, logger, patience }, lines),
      );
      const log = await openLog({ nc, names, config, logger });
      undo.push(() => log.close());
      const clock = clockOfServers(nc, names);
      undo.push(() => clock.stop());
      await clock.start(patience);
      await health.watch(nc);
      const registry = await patience.waitFor('the registry of workers', () =>
        WorkerRegistry.open(nc, names),
      );
      const leastAckWaitMs = Math.min(...ackWaits.values());
      const leases = this.#makeLeases(leastAckWaitMs);
      undo.push(() => leases.stop());
      await this.#startLeases(leases, patience);
      const feed = new Feed({ nc, names, active: this.#active });
      undo.push(() => feed.stop());
      feed.start(runnables.keys());
      const opened = await this.#openSpooling(nc, patience);
      undo.push(() => opened.stop());
      spooling = opened;
      const bench = this.#makeBench({ nc, log, clock, leases, registry, ackWaits, spooling: opened });
      this.#bench = bench;
      const source = new WorkSource(
        lines.map((line) => this.#pull(nc, line)),
        this.#admission,
      );
      const stopHearing = this.#plan.strayRejections === 'log' ? this.#hearStrays() : () => {};
      this.#running = { nc, log, clock, leases, feed, source, spooling: opened, health, stopHearing };
      if (opened.problem !== undefined) this.#tellProblem();
      void this.#watchConnection(nc, source, opened);
      source.start();
      opened.inherit(bench);
      logger.info(
        { types: [...runnables.keys()], concurrency: total, ackWaitMs: leastAckWaitMs },
        'worker started',
      );
    } catch (error) {
      for (const step of undo.reverse())
        await Promise.resolve()
          .then(step)
          .catch(() => undefined);
      throw error;
    }
  }

  #makeLeases(leastAckWaitMs: number): LeaseKeeper {
    const { config, id, total, leaseNats, maxBlockedMs, logger } = this.#plan;
    return new LeaseKeeper({
      slots: total,
      nats: leaseNats,
      identity: identityOf(this.#plan, leastAckWaitMs),
      entrySubject: entrySubject(namesOf(config.prefix), id),
      leastAckWaitMs,
      maxBlockedMs,
      onExpired: (slot) => this.#leaseExpired(slot),
      logger,
    });
  }

  async #startLeases(leases: LeaseKeeper, patience: Patience): Promise<void> {
    const { natsUrl: url } = this.#plan.leaseNats;
    await patience.waitFor('the connection of the leases', () => leases.start(), {
      unanswered: () => new TaskledgerError('nats_unreachable', { url, reason: 'no answer' }),
    });
  }

  #openSpooling(nc: NatsConnection, patience: Patience): Promise<Spooling> {
    const { config, id, spoolDir, logger } = this.#plan;
    const names = namesOf(config.prefix);
    return openSpooling({
      directory: spoolDir,
      worker: id,
      installation: () => patience.waitFor('the log', () => installationOf(nc, names)),
      onProblem: () => this.#tellProblem(),
      logger,
    });
  }

  /** A stop ends it. */
  #patienceAtStart(): Patience {
    const { startTimeoutMs: forMs, logger } = this.#plan;
    const onFailure = sparingly((error: TaskledgerError) =>
      logger.warn({ code: error.code, reason: error.message }, 'waiting for NATS'),
    );
    return new Patience({ forMs, signal: this.#stopAsked.signal, onFailure });
  }

  async #run(delivery: Delivery): Promise<void> {
    const bench = this.#bench;
    try {
      if (bench !== undefined) await executeAttempt(bench, delivery);
    } catch (error) {
      const { logger } = this.#plan;
      const fields = { seq: delivery.seq, type: delivery.type };
      if (error instanceof TaskledgerError && error.code === 'log_unavailable') {
        logger.warn(
          { ...fields, code: error.code, reason: error.message },
          'attempt not begun: the log does not answer; it comes again',
        );
        // Its lease would hold it for the whole ack-wait, long after the log is back.
        if (bench !== undefined) handBack(bench, delivery, UNANSWERED_MS);
      } else
        logger.error(
          { ...fields, err: error },
          'attempt broken off; it comes again when its lease has run out',
        );
    } finally {
      this.#admission.done(delivery.type);
      this.#running?.source.topUp();
    }
  }

  #end(): Promise<void> {
    this.#stopAsked.abort();
    this.#ending ??= this.#shutDown();
    return this.#ending;
  }

  async #shutDown(): Promise<void> {
    // A start under way is waited for: only then it is known what there is to stop.
    await this.#starting?.catch(() => undefined);
    const running = this.#running;
    this.#admission.close();
    if (running === undefined) return clearTimeout(this.#patience);
    const { nc, log, clock, leases, feed, source, spooling, health, stopHearing } = running;
    await within(FLUSH_MS, source.stop());
    await this.#admission.whenIdle();
    clearTimeout(this.#patience);
    feed.stop();
    await spooling.stop();
    await leases.stop();
    // The acks are still on their way out; without a connection there is nobody to wait for.
    if (!nc.isClosed()) await within(FLUSH_MS, nc.flush());
    await clock.stop();
    await log.close();
    await health.stop();
    if (this.#plan.connection === undefined) await nc.close();
    stopHearing();
    this.#plan.logger.info({ stats: this.stats() }, 'worker stopped');
  }

  /** The second signal: after `ms`, what still runs is told to end, and soon after that nothing is waited for. */
  #losePatienceIn(ms: number): void {
    if (this.#patience !== undefined) return;
    this.#patience = setTimeout(() => {
      for (const attempt of this.#active.values()) attempt.abort('shutdown');
      this.#patience = setTimeout(() => {
        this.#abandoned = true;
        void this.#running?.log.close();
      }, this.#plan.abortGraceMs + LAST_SETTLE_MS);
    }, ms);
  }

  /** With a spool the attempt goes on: its outcome will be told, and the fence says whether it still counts. */
  #leaseExpired(slot: number): void {
    for (const attempt of this.#active.values()) {
      if (attempt.leaseSlot !== slot) continue;
      if (this.#plan.spoolDir === undefined) attempt.abort('lease_expired');
      else this.#plan.logger.warn({ attempt: attempt.key }, 'lease not renewed for its ack-wait; going on');
    }
  }

  /** A worker that could not keep an outcome takes no work: in an outage it would lose what it has done. */
  #tellProblem(): void {
    const running = this.#running;
    if (running === undefined) return;
    const { problem } = running.spooling;
    running.source.hold(problem !== undefined);
    running.leases.showDegraded(
      problem === undefined ? undefined : `the spool cannot be written: ${problem}`,
    );
    const { spoolDir, logger } = this.#plan;
    if (problem === undefined) logger.info({ spoolDir }, 'the spool can be written again: taking work');
    else logger.error({ spoolDir, problem }, 'the spool cannot be written: taking no work');
  }

  #makeBench({
    nc,
    log,
    clock,
    leases,
    registry,
    ackWaits,
    spooling,
  }: Pick<Running, 'nc' | 'log' | 'clock' | 'leases' | 'spooling'> & {
    registry: WorkerRegistry;
    ackWaits: ReadonlyMap<string, number>;
  }): Bench {
    const { config, runnables, abortGraceMs, hooks, logger, version: workerVersion } = this.#plan;
    return {
      log,
      actor: { kind: 'worker', id: this.id },
      workerVersion,
      clock,
      dice: Math.random,
      runnables,
      leases,
      ackWaitMs: (type) => ackWaits.get(type) ?? config.ackWaitMs,
      active: this.#active,
      standingOf: (workerId, attempt) => registry.standingOf(workerId, attempt),
      tell: (ackSubject, word) => {
        if (!nc.isClosed()) nc.publish(ackSubject, word);
      },
      abortGraceMs,
      carryEveryMs: Math.min(MAX_TIMER_MS, (config.hotWindowHours * 3_600_000) / 3),
      resultLimits: { maxBytes: config.maxPayloadBytes, maxDepth: config.maxPayloadDepth },
      spool: spooling.keeper,
      abandoned: () => this.#abandoned,
      counters: this.#counters,
      hooks: guarded(hooks, logger),
      logger,
    };
  }

  #pull(nc: NatsConnection, { type, version }: WorkLine): Pull {
    const { config, ackWaitMs, logger } = this.#plan;
    const names = namesOf(config.prefix);
    return new Pull({
      nc,
      stream: names.streams.tasks,
      consumer: names.workConsumer(type, version),
      type,
      onDelivery: (delivery) => {
        if (this.#running?.source.held === true && this.#bench !== undefined)
          return handBack(this.#bench, delivery, HELD_MS);
        this.#admission.offer(delivery);
        this.#running?.source.topUp();
      },
      onSettled: () => this.#running?.source.topUp(),
      recreate: async () => {
        await ensureConsumers({ nc, names, ackWaitMs, config, logger }, [{ type, version }]);
      },
      logger,
    });
  }

  #hearStrays(): () => void {
    const { hooks, logger } = this.#plan;
    return hearStrayRejections((reason) => {
      this.#counters.strayRejections += 1;
      const active = [...this.#active.keys()];
      logger.error(
        { err: reason, active },
        'a rejection that nobody handles; a handler has forgotten a promise',
      );
      guarded(hooks, logger).strayRejection?.(reason);
    });
  }

  async #watchConnection(nc: NatsConnection, source: WorkSource, spooling: Spooling): Promise<void> {
    for await (const status of nc.status()) {
      if (status.type === 'disconnect') spooling.connectionIs('away');
      if (status.type !== 'reconnect') continue;
      spooling.connectionIs('back');
      source.reconnected();
      if (this.#running !== undefined) void recheck(this.#running.log, this.#active, this.id);
    }
  }
}
