import { randomUUID } from 'node:crypto';
import { Leadership } from '../log/leadership.ts';
import type { OpenedLog } from '../log/open.ts';
import type { Clock } from '../platform/clock.ts';
import type { Config } from '../platform/config.ts';
import { type Service, serviceGroup } from '../platform/service.ts';
import { createMirror } from '../registry/mirror.ts';
import { mirrorSubmissionSettings } from '../registry/registry.ts';
import { Firing, MarkSchema } from './firing.ts';
import { FiringLoop } from './firing-loop.ts';
import { mirrorSchedules, type ScheduleParts } from './schedules.ts';

export interface SchedulerParts extends ScheduleParts {
  readonly log: Pick<OpenedLog, 'append' | 'readState'>;
  readonly config: Pick<Config, 'leaderLeaseMs'>;
  readonly clock: Clock;
}

export interface Scheduler extends Service {
  isLeader(): boolean;
}

/**
 * Fires the slots of all schedules, one process at a time: whoever holds the lease. It wakes by its own timer for the next
 * slot. The server's message schedules are not used: what is due follows from the schedules and the marks alone, so
 * there is no second list of slots that could be lost or be out of step, and their cron knows no rule for changed clocks.
 */
export function createScheduler(parts: SchedulerParts): Scheduler {
  const { nc, names, logger, log, config, clock } = parts;
  const owner = `scheduler-${randomUUID()}`;
  const schedules = mirrorSchedules(parts);
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
      loop.wake();
    },
  });
  const firing: Firing = new Firing({
    log,
    schedules,
    marks,
    types: settings.types,
    clock,
    actor: { kind: 'dispatcher', id: owner },
    logger,
    mayFire: (): boolean => !loop.stopping && leadership.holds(),
  });
  const loop = new FiringLoop({ firing, leadership, clock, logger });
  schedules.onChange(() => loop.wake());
  return {
    // Firing ends before the lease is given back, and both before what they read.
    ...serviceGroup('scheduler', [schedules, marks, settings, leadership, loop]),
    isLeader: () => leadership.holds(),
  };
}
