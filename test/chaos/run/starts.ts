import { setTimeout as delay } from 'node:timers/promises';
import type { Stand } from '../stand/stand.ts';
import type { PartLogs } from './part-logs.ts';

type Starts = PartLogs['starts'];

/** A standby writes a snapshot every few seconds under load, and a start of either kind takes one or two: redeploy.ts. */
const WITHIN_MS = 60_000;
const POLL_MS = 200;

/**
 * While nothing is hurt and the load goes on: a dispatcher begins from a snapshot, then all begin from the log. What the nemesis
 * brings about is left to chance; these are in every run. Answers what could not be had.
 */
export async function showBothStarts(
  stand: Pick<Stand, 'hasSnapshot' | 'redeploy'>,
  starts: () => Promise<Starts>,
): Promise<string[]> {
  if (!(await until(() => stand.hasSnapshot())))
    return [`no dispatcher has written a snapshot in ${WITHIN_MS} ms with nothing hurt`];
  const complaints: string[] = [];
  for (const [how, from] of [
    ['one', 'snapshot'],
    ['afresh', 'log'],
  ] as const) {
    const before = await starts();
    await stand.redeploy(how);
    if (!(await until(async () => (await starts())[from] > before[from])))
      complaints.push(`no dispatcher has begun from the ${from} in ${WITHIN_MS} ms with nothing hurt`);
  }
  return complaints;
}

/** Whether it came true in time. The brokers may still be electing: a question that fails is asked again. */
async function until(holds: () => Promise<boolean>): Promise<boolean> {
  for (const deadline = Date.now() + WITHIN_MS; Date.now() < deadline; await delay(POLL_MS))
    if (await holds().catch(() => false)) return true;
  return false;
}
