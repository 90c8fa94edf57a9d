import type { NatsConnection } from '@nats-io/transport-node';
import { TaskledgerError } from '../domain/errors.ts';
import type { Actor } from '../domain/events.ts';
import type { Names } from '../log/subjects.ts';
import type { Logger } from '../observe/log.ts';
import type { Service } from '../platform/service.ts';
import { createMirror, type Mirror } from '../registry/mirror.ts';
import { type Definition, type Schedule, ScheduleSchema, sameTiming } from './schedule.ts';

export interface ScheduleKey {
  readonly tenant: string;
  readonly name: string;
}

/** Who changes a schedule, and when (ms since 1970). */
export interface Change extends ScheduleKey {
  readonly by: Actor;
  readonly now: number;
}

/** The schedules of all tenants. Reads are answered from memory; a change is stored before it returns, or throws `log_unavailable`. */
export interface Schedules extends Service {
  get(key: ScheduleKey): Schedule | undefined;
  /** In the order of their names; of all tenants without one. */
  list(tenant?: string): Schedule[];
  /** Makes or replaces one. The same definition again changes nothing. */
  put(change: Change, definition: Definition): Promise<Schedule>;
  /** Throws `schedule_not_found`, as the following do. */
  pause(change: Change, reason: string | undefined): Promise<Schedule>;
  /** Slots that fell into the pause are not made up for. */
  resume(change: Change): Promise<Schedule>;
  remove(key: ScheduleKey): Promise<void>;
}

export interface ScheduleParts {
  readonly nc: NatsConnection;
  readonly names: Pick<Names, 'buckets'>;
  readonly logger: Logger;
}

export const keyOf = ({ tenant, name }: ScheduleKey): string => `${tenant}.${name}`;

export const mirrorSchedules = (parts: ScheduleParts): Mirror<Schedule> =>
  createMirror({
    nc: parts.nc,
    bucket: parts.names.buckets.schedules,
    logger: parts.logger,
    parse: (value) => ScheduleSchema.parse(value),
  });

export const openSchedules = (parts: ScheduleParts): Schedules => schedulesOver(mirrorSchedules(parts));

/** The rules of what a change does to a schedule, over any place that keeps them. */
export function schedulesOver(mirror: Mirror<Schedule>): Schedules {
  const changed = async (
    key: ScheduleKey,
    build: (current: Schedule) => Schedule | undefined,
  ): Promise<Schedule | undefined> =>
    mirror.change(keyOf(key), (current) => {
      if (current === undefined) throw new TaskledgerError('schedule_not_found', { ...key });
      return build(current);
    });
  const existing = async (key: ScheduleKey, build: (current: Schedule) => Schedule): Promise<Schedule> => {
    const schedule = await changed({ tenant: key.tenant, name: key.name }, build);
    if (schedule === undefined) throw new TaskledgerError('schedule_not_found', { ...key });
    return schedule;
  };

  return {
    name: 'schedules',
    start: (patience) => mirror.start(patience),
    stop: () => mirror.stop(),
    get: (key) => mirror.get(keyOf(key)),
    list: (tenant) =>
      mirror
        .values()
        .filter((schedule) => tenant === undefined || schedule.tenant === tenant)
        .sort((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1)),
    async put(change, definition) {
      const stored = await mirror.change(keyOf(change), (current) => redefined(current, change, definition));
      if (stored === undefined) throw new Error('a schedule that was put is not there');
      return stored;
    },
    pause: (change, reason) =>
      existing(change, (current) => {
        const at = new Date(change.now).toISOString();
        const paused = { at, by: change.by, ...(reason === undefined ? {} : { reason }) };
        return { ...current, ...marked(current, change), paused };
      }),
    resume: (change) =>
      existing(change, (current) => {
        if (current.paused === undefined) return current;
        const { paused: _paused, ...rest } = current;
        return { ...rest, ...marked(current, change), since: new Date(change.now).toISOString() };
      }),
    async remove(key) {
      await changed({ tenant: key.tenant, name: key.name }, () => undefined);
    },
  };
}

const marked = ({ version }: Schedule, { by, now }: Change) => ({
  version: version + 1,
  changedAt: new Date(now).toISOString(),
  changedBy: by,
});

/** A new timing has slots from now on only; another payload or policy leaves the slots as they are. */
function redefined(current: Schedule | undefined, change: Change, definition: Definition): Schedule {
  const { tenant, name, by, now } = change;
  const at = new Date(now).toISOString();
  if (current === undefined) {
    const made = { createdAt: at, changedAt: at, changedBy: by, since: at, anchor: at };
    return ScheduleSchema.parse({ ...definition, tenant, name, version: 1, ...made });
  }
  const { createdAt, since, anchor, paused } = current;
  const timing = sameTiming(current, definition) ? { since, anchor } : { since: at, anchor: at };
  const kept = { tenant, name, createdAt, ...(paused === undefined ? {} : { paused }) };
  const next = ScheduleSchema.parse({ ...definition, ...kept, ...marked(current, change), ...timing });
  return sameDefinition(current, next) ? current : next;
}

function sameDefinition(one: Schedule, other: Schedule): boolean {
  const text = ({ version: _v, changedAt: _at, changedBy: _by, ...rest }: Schedule): string =>
    JSON.stringify(Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1)));
  return text(one) === text(other);
}
