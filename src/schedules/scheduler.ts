import { randomUUID } from 'node:crypto';
import { Leadership } from '../log/leadership.ts';
import type { OpenedLog } from '../log/open.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config.ts';
import { Nap } from '../platform/nap.ts';
import { type Service, serviceGroup } from '../platform/service.ts';
import { createMirror } from '../registry/mirror.ts';
import { mirrorSubmissionSettings } from '../registry/registry.ts';
import { Firing, MarkSchema, type Pass } from './firing.ts';
import { mirrorSchedules, type ScheduleParts } from './schedules.ts';

export interface SchedulerParts extends ScheduleParts {
  readonly log: Pick<OpenedLog, 'append' | 'readState'>;
  readonly config: Pick<Config, 'leaderLeaseMs'>;
  readonly clock: Clock;
}

export interface Scheduler extends Service {
  isLeader(): boolean;
}

/** Node's timers cannot be set much further, and a clock that was set is noticed. */
const LONGEST_WAIT_MS = 60_000;
const RETRY_MS = 1_000;

/**
 * Fires the slots of all schedules, one process at a time: whoever holds the lease. It wakes by its own timer for the next
 * slot. The server's message schedules are not used: what is due follows from the schedules and the marks alone, so
 * there is no second list of slots that could be lost or be out of step, and their cron knows no rule for changed clocks.
 *
 *   waiting -> firing   a slot is due, a schedule has changed, or it has become the leader
 *   firing -> waiting   the pass is over
 */
export function createScheduler(parts: SchedulerParts): Scheduler {
  const { nc, names, logger, log, config, clock } = parts;
  const owner = `scheduler-${randomUUID()}`;
  const nap = new Nap();
  let changed = false;
  let stopping = false;
  let loop: Promise<void> | undefined;
  const onChange = (): void => {
    changed = true;
    nap.wake();
  };
  const schedules = mirrorSchedules(parts);
  schedules.onChange(onChange);
  const marks = createMirror({
    nc,
    bucket: names.buckets.scheduleMarks,
    logger,
    parse: (value) => MarkSchema.parse(value),
  });
  const settings = mirrorSubmissionSettings(parts);
  const leadership = new Leadership({
    nc,
    bucket: names.buckets.leaders,
    key: 'scheduler',
    owner,
    leaseMs: config.leaderLeaseMs,
    logger,
    onChange: () => {
      firing.forget();
      onChange();
    },
  });
  const firing = new Firing({
    log,
    schedules,
    marks,
    types: settings.types,
    clock,
    actor: { kind: 'dispatcher', id: owner },
    logger,
    mayFire: () => !stopping && leadership.holds(),
  });

  async function run(): Promise<void> {
    while (!stopping) {
      changed = false;
      // A lease that was renewed late comes back without a word.
      await pause(leadership.holds() ? (await passOnce()).nextAt : clock.now() + RETRY_MS);
    }
  }

  async function passOnce(): Promise<Pass> {
    try {
      const pass = await firing.runOnce();
      const { nextAt: _nextAt, ...counts } = pass;
      if (counts.fired > 0 || counts.skipped > 0 || counts.failed > 0) logger.info(counts, 'slots fired');
      return pass;
    } catch (error) {
      logger.error({ error: String(error) }, 'the schedules cannot be looked after');
      return { fired: 0, skipped: 0, failed: 0, nextAt: clock.now() + RETRY_MS };
    }
  }

  async function pause(until: number): Promise<void> {
    if (changed || stopping) return;
    await nap.take(Math.min(LONGEST_WAIT_MS, Math.max(1, until - clock.now())));
  }

  const running: Service = {
    name: 'firing',
    async start() {
      loop ??= run();
    },
    async stop() {
      stopping = true;
      nap.wake();
      await loop;
    },
  };
  return {
    // Firing ends before the lease is given back, and both before what they read.
    ...serviceGroup('scheduler', [schedules, marks, settings, leadership, running]),
    isLeader: () => leadership.holds(),
  };
}
