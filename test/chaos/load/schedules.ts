import type { Recorded } from '../../../src/domain/events.ts';
import type { FiredSlot, Schedule } from '../checker/evidence.ts';
import type { Call } from './http.ts';

interface AskOptions {
  readonly call: Call;
  /** Of the tenant that the schedules are of. */
  readonly tenant: string;
  readonly key: string;
  /** Of the run. */
  readonly seconds: number;
}

/** A schedule by clock, one by elapsed time, and one that leaves slots out, so that only doubled ones are wrong. */
const SCHEDULES = [
  { name: 'pulse', everyMs: 3_000, by: 'cron', overlap: 'allow', ms: 20 },
  { name: 'beat', everyMs: 2_000, by: 'every', overlap: 'allow', ms: 20 },
  { name: 'sweep', everyMs: 2_000, by: 'every', overlap: 'skip', ms: 3_000 },
] as const;
/** No slot is so near to now that it could have passed before the schedule is stored. */
const LEAD_MS = 6_000;

/** Puts the schedules, and says which slots they must fire. They end with the run. */
export async function putSchedules({ call, tenant, key, seconds }: AskOptions): Promise<Schedule[]> {
  const schedules: Schedule[] = [];
  for (const { name, everyMs, by, overlap, ms } of SCHEDULES) {
    const from = Math.ceil((Date.now() + LEAD_MS) / everyMs) * everyMs;
    const slots = Math.max(1, Math.floor((seconds * 1_000 - LEAD_MS) / everyMs));
    const everyS = everyMs / 1_000;
    const { ok, status, body } = await call({
      key,
      method: 'PUT',
      path: `/v1/schedules/${name}`,
      body: {
        type: 'notify',
        payload: { badAttempts: 0, bad: 'fail', ms },
        ...(by === 'cron'
          ? { cron: `*/${everyS} * * * * *`, timeZone: 'UTC', startAt: new Date(from - 1).toISOString() }
          : { every: `${everyS}s`, startAt: new Date(from).toISOString() }),
        overlap,
        missed: 'all',
        missedLimit: 1_000,
        endAt: new Date(from + slots * everyMs - 1).toISOString(),
      },
    });
    if (!ok) throw new Error(`PUT of the schedule ${name} answered ${status}: ${JSON.stringify(body)}`);
    const expected = Array.from({ length: slots }, (_, n) => from + n * everyMs);
    schedules.push({ tenant, name, expected: overlap === 'allow' ? expected : [] });
  }
  return schedules;
}

/** Ends the schedules of a run that was cut short at `at`, and says which slots they must have fired until then. */
export async function endSchedules(
  { call, key }: Pick<AskOptions, 'call' | 'key'>,
  schedules: readonly Schedule[],
  at: number,
): Promise<Schedule[]> {
  for (const { name } of schedules) {
    const { ok, status } = await call({ key, method: 'DELETE', path: `/v1/schedules/${name}` });
    if (!ok && status !== 404) throw new Error(`DELETE of the schedule ${name} answered ${status}`);
  }
  return schedules.map((schedule) => ({
    ...schedule,
    expected: schedule.expected.filter((slotAt) => slotAt < at),
  }));
}

/** The tasks that say which slot they are of. */
export function firedSlots(log: readonly Recorded[]): FiredSlot[] {
  return log.flatMap(({ event }) => {
    if (event.kind !== 'INGESTED') return [];
    const { schedule } = event.data;
    return schedule?.slotAt === undefined
      ? []
      : [{ tenant: event.tenant, schedule: schedule.name, slotAt: schedule.slotAt, taskId: event.taskId }];
  });
}
