import type { Stand } from '../stand/stand.ts';
import { cameTrue } from './came-true.ts';
import type { PartLogs } from './part-logs.ts';

type Starts = PartLogs['starts'];

/** A standby writes a snapshot every few seconds under load, and a start of either kind takes one or two: redeploy.ts. */
const WITHIN_MS = 60_000;
const PATIENCE = { withinMs: WITHIN_MS, pollMs: 200 };

/**
 * While nothing is hurt and the load goes on: a dispatcher begins from a snapshot, then all begin from the log. What the nemesis
 * brings about is left to chance; these are in every run. Answers what could not be had.
 */
export async function showBothStarts(
  stand: Pick<Stand, 'hasSnapshot' | 'redeploy'>,
  starts: () => Promise<Starts>,
): Promise<string[]> {
  if (!(await cameTrue(() => stand.hasSnapshot(), PATIENCE)))
    return [`no dispatcher has written a snapshot in ${WITHIN_MS} ms with nothing hurt`];
  const complaints: string[] = [];
  for (const [how, from] of [
    ['one', 'snapshot'],
    ['afresh', 'log'],
  ] as const) {
    const before = await starts();
    await stand.redeploy(how);
    if (!(await cameTrue(async () => (await starts())[from] > before[from], PATIENCE)))
      complaints.push(`no dispatcher has begun from the ${from} in ${WITHIN_MS} ms with nothing hurt`);
  }
  return complaints;
}
