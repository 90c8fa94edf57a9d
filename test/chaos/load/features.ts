import type { Recorded } from '../../../src/domain/events.ts';
import type { ConcurrencyLimit, FiredSlot, Schedule } from '../checker/evidence.ts';

/** What an operator or a tenant has asked for, and the product has taken: the rules of it are checked. */
export interface Asked {
  readonly limits: readonly ConcurrencyLimit[];
  readonly schedules: readonly Schedule[];
}

export interface AskOptions {
  /** An API as its clients reach it. */
  readonly api: string;
  readonly operatorKey: string;
  /** Of the tenant that the schedule is of. */
  readonly tenant: string;
  readonly tenantKey: string;
  /** A tenant that may run only so many tasks at once. */
  readonly limited: { readonly tenant: string; readonly max: number };
  readonly seconds: number;
}

const EVERY_MS = 3_000;
const NAME = 'pulse';
/** No slot is so near to now that it could have passed before the schedule is stored. */
const LEAD_MS = 6_000;
const NOT_THERE = 404;
const NOT_KNOWN = 400;

/** Sets a concurrency limit and a schedule. A product that does not know one of them is left without it. */
export async function askForFeatures(options: AskOptions): Promise<Asked> {
  const { api, operatorKey, tenant, tenantKey, limited, seconds } = options;
  const put = async (path: string, key: string, body: object): Promise<boolean> => {
    const response = await fetch(new URL(path, api), {
      method: 'PUT',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (response.ok) return true;
    if (response.status === NOT_THERE || response.status === NOT_KNOWN) return false;
    throw new Error(`PUT ${path} answered ${response.status}: ${await response.text()}`);
  };
  const isLimited = await put(`/v1/tenants/${limited.tenant}`, operatorKey, {
    limits: { concurrency: limited.max },
  });
  const from = Math.ceil((Date.now() + LEAD_MS) / EVERY_MS) * EVERY_MS;
  const slots = Math.max(1, Math.floor((seconds * 1_000 - LEAD_MS) / EVERY_MS));
  const expected = Array.from({ length: slots }, (_, n) => from + n * EVERY_MS);
  const isScheduled = await put(`/v1/schedules/${NAME}`, tenantKey, {
    type: 'notify',
    payload: { badAttempts: 0, bad: 'fail', ms: 20 },
    cron: `*/${EVERY_MS / 1_000} * * * * *`,
    timeZone: 'UTC',
    overlap: 'allow',
    missed: 'all',
    missedLimit: 1_000,
    startAt: new Date(from - 1).toISOString(),
    endAt: new Date(from + slots * EVERY_MS - 1).toISOString(),
  });
  return {
    limits: isLimited ? [limited] : [],
    schedules: isScheduled ? [{ tenant, name: NAME, expected }] : [],
  };
}

/** The tasks that say which slot they are of. */
export function firedSlots(log: readonly Recorded[]): FiredSlot[] {
  return log.flatMap(({ event }) => {
    if (event.kind !== 'INGESTED') return [];
    const { schedule } = event.data as { schedule?: { name: string; slotAt?: number } };
    return schedule?.slotAt === undefined
      ? []
      : [{ tenant: event.tenant, schedule: schedule.name, slotAt: schedule.slotAt, taskId: event.taskId }];
  });
}
