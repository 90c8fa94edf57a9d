import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import type { Actor } from '../domain/events.ts';
import type { Json } from '../domain/json.ts';
import { TaskIdSchema } from '../domain/names.ts';
import { TERMINAL } from '../domain/task.ts';
import type { EventLog } from '../log/event-log.ts';
import { execute } from '../log/handle.ts';
import type { Logger } from '../observe/log.ts';
import type { Clock } from '../platform/clock.ts';
import type { Mirror } from '../registry/mirror.ts';
import { type TypeSettings, withTypeSettings } from '../registry/type-settings.ts';
import { dueSlots, MISSED_AFTER_MS } from './plan.ts';
import { type Schedule, slotsOfSchedule } from './schedule.ts';
import { keyOf } from './schedules.ts';
import { taskIdOfSlot } from './slot-id.ts';
import type { Slots } from './timing.ts';

/** How far a schedule has been fired: its last settled slot, and the task of the last one that was not skipped. */
export const MarkSchema = z.strictObject({ slotAt: z.int(), taskId: TaskIdSchema.optional() });
export type Mark = z.infer<typeof MarkSchema>;

export interface FiringParts {
  readonly log: Pick<EventLog, 'append' | 'readState'>;
  readonly schedules: Pick<Mirror<Schedule>, 'get' | 'values'>;
  readonly marks: Pick<Mirror<Mark>, 'get' | 'change'>;
  readonly types: { get(type: string): TypeSettings | undefined };
  readonly clock: Clock;
  readonly actor: Actor;
  readonly logger: Logger;
  /** Asked before each slot: whether this process still is the one that fires. */
  mayFire(): boolean;
}

export interface Pass {
  readonly fired: number;
  /** Slots passed over because the task of the slot before had not ended. */
  readonly skipped: number;
  readonly failed: number;
  /** When the next slot, or the next try, is due; Infinity for never. */
  readonly nextAt: number;
}

interface Planned {
  readonly schedule: Schedule;
  readonly slots: Slots;
  nextAt: number;
}

const AT_ONCE = 64;
const RETRY_MS = 1_000;

/**
 * Makes the tasks of slots that are due. The order is: append the task, then mark the slot (rule 3). A slot fired twice, by
 * two who believe they lead or by one after a crash, is one task, because the slot is the task's id and the log is fenced.
 */
export class Firing {
  readonly #parts: FiringParts;
  #planned = new Map<string, Planned>();

  constructor(parts: FiringParts) {
    this.#parts = parts;
  }

  async runOnce(): Promise<Pass> {
    const now = this.#parts.clock.now();
    this.#plan();
    const due = [...this.#planned.values()].filter(({ nextAt }) => nextAt <= now);
    const counts = { fired: 0, skipped: 0, failed: 0 };
    let index = 0;
    const work = async (): Promise<void> => {
      for (let planned = due[index++]; planned !== undefined; planned = due[index++])
        await this.#fire(planned, now, counts);
    };
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, due.length) }, work));
    let nextAt = Number.POSITIVE_INFINITY;
    for (const planned of this.#planned.values()) nextAt = Math.min(nextAt, planned.nextAt);
    return { ...counts, nextAt };
  }

  /** What somebody else has marked meanwhile is looked at again. */
  forget(): void {
    this.#planned.clear();
  }

  #plan(): void {
    const planned = new Map<string, Planned>();
    for (const schedule of this.#parts.schedules.values()) {
      const known = this.#planned.get(keyOf(schedule));
      const entry = known?.schedule === schedule ? known : this.#open(schedule);
      if (entry !== undefined) planned.set(keyOf(schedule), entry);
    }
    this.#planned = planned;
  }

  #open(schedule: Schedule): Planned | undefined {
    try {
      const slots = slotsOfSchedule(schedule);
      const nextAt = schedule.paused === undefined ? slots.next(this.#settled(schedule)) : undefined;
      return { schedule, slots, nextAt: nextAt ?? Number.POSITIVE_INFINITY };
    } catch (error) {
      this.#parts.logger.error(
        { schedule: keyOf(schedule), error: String(error) },
        'a schedule cannot be read; it does not fire',
      );
      return undefined;
    }
  }

  /** Slots up to here are done with. */
  #settled(schedule: Schedule): number {
    const mark = this.#parts.marks.get(keyOf(schedule))?.slotAt ?? 0;
    return Math.max(mark, Date.parse(schedule.since));
  }

  async #fire(
    planned: Planned,
    now: number,
    counts: { fired: number; skipped: number; failed: number },
  ): Promise<void> {
    const { schedule, slots } = planned;
    const { missed, missedLimit } = schedule;
    try {
      const after = this.#settled(schedule);
      let settled = Math.max(after, now - MISSED_AFTER_MS);
      for (const slotAt of dueSlots({ slots, after, now, missed, missedLimit })) {
        if (!this.#isCurrent(schedule)) return;
        counts[await this.#fireSlot(schedule, slotAt)] += 1;
        settled = Math.max(settled, slotAt);
      }
      planned.nextAt = slots.next(settled) ?? Number.POSITIVE_INFINITY;
    } catch (error) {
      counts.failed += 1;
      planned.nextAt = now + RETRY_MS;
      this.#parts.logger.warn(
        { schedule: keyOf(schedule), error: String(error) },
        'a slot was not fired yet; trying again',
      );
    }
  }

  /** A changed schedule does not fire its old slots, and who leads no more fires nothing. */
  #isCurrent(schedule: Schedule): boolean {
    return this.#parts.mayFire() && this.#parts.schedules.get(keyOf(schedule)) === schedule;
  }

  /** (1) look at the task of the slot before (2) append this slot's (3) mark the slot. */
  async #fireSlot(schedule: Schedule, slotAt: number): Promise<'fired' | 'skipped'> {
    const { tenant, name } = schedule;
    const previous = this.#parts.marks.get(keyOf(schedule))?.taskId;
    if (previous !== undefined && !(await this.#mayFollow(schedule, previous))) {
      await this.#mark(schedule, { slotAt, taskId: previous });
      return 'skipped';
    }
    const taskId = taskIdOfSlot(tenant, name, slotAt);
    await this.#ingest(schedule, slotAt, taskId);
    await this.#mark(schedule, { slotAt, taskId });
    return 'fired';
  }

  async #mayFollow({ tenant, overlap }: Schedule, previous: string): Promise<boolean> {
    if (overlap === 'allow') return true;
    const { log, actor, clock } = this.#parts;
    const state = await log.readState(tenant, previous);
    if (state === undefined || TERMINAL.has(state.status)) return true;
    if (overlap === 'skip') return false;
    // Refused when it has ended by now, or is being cancelled already: both are what is wanted.
    await execute(log, { tenant, taskId: previous, known: state }, () => ({
      kind: 'request_cancel',
      eventId: randomUUID(),
      at: clock.now(),
      actor,
      reason: 'the next slot of its schedule is due',
    }));
    return true;
  }

  async #ingest(schedule: Schedule, slotAt: number, taskId: string): Promise<void> {
    const { log, types, actor, clock } = this.#parts;
    const { tenant, type, name, payload, priority, policy } = schedule;
    const result = await execute(log, { tenant, taskId, known: 'none' }, () => ({
      kind: 'ingest',
      eventId: randomUUID(),
      at: clock.now(),
      actor,
      taskId,
      tenant,
      type,
      payload: payload as Json,
      ...withTypeSettings(types.get(type), { priority, policy }),
      schedule: { name, slotAt },
    }));
    if (!result.ok && result.error.code !== 'task_exists') throw result.error;
  }

  /** Never backwards: another leader may be ahead. */
  async #mark(schedule: Schedule, mark: Mark): Promise<void> {
    await this.#parts.marks.change(keyOf(schedule), (current) =>
      current !== undefined && current.slotAt >= mark.slotAt ? current : mark,
    );
  }
}
