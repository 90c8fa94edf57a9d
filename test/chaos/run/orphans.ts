import type { Recorded } from '../../../src/domain/events.ts';
import { livesOf } from '../checker/lives.ts';
import type { DoneFault } from '../nemesis/nemesis.ts';
import type { Death } from '../stand/victim.ts';

/** An attempt whose worker died. */
export interface Orphan {
  readonly taskId: string;
  /** From the death of the worker's process to the event that says the attempt is lost. */
  readonly ms: number;
  /** Events of the attempt and what was hurt until it came back, in order, in seconds since the death. */
  readonly story: readonly string[];
}

/** Parts that an attempt's return does not pass through. */
const BYSTANDERS = ['api-', 'projector-', 'postgres', 'clients'];

/** The attempts that dead workers left behind, those that were away longest first. */
export function orphansOf(
  log: readonly Recorded[],
  deaths: readonly Death[],
  faults: readonly DoneFault[],
): Orphan[] {
  const orphans: Orphan[] = [];
  for (const [key, life] of livesOf(log)) {
    let claimed: Recorded | undefined;
    for (const recorded of life) {
      const { event, storedAt } = recorded;
      if (event.kind === 'CLAIMED') claimed = recorded;
      if (event.kind !== 'RETRY_CLAIMED' || claimed === undefined) continue;
      const death = deathOf(event.data.lostWorker, deaths, claimed.storedAt, storedAt);
      if (death === undefined) continue;
      const from = claimed.seq;
      const attempt = life.filter(({ seq }) => seq >= from && seq <= recorded.seq);
      orphans.push({
        taskId: key,
        ms: storedAt - death.at,
        story: storyOf(death, attempt, faults),
      });
    }
  }
  return orphans.sort((one, other) => other.ms - one.ms);
}

/** A worker's incarnation is named after its part, with more behind: `worker-3-4711-0a1b2c3d`. */
const deathOf = (worker: string, deaths: readonly Death[], from: number, to: number): Death | undefined =>
  deaths.find(({ name, at }) => worker.startsWith(`${name}-`) && at >= from && at <= to);

function storyOf(death: Death, attempt: readonly Recorded[], faults: readonly DoneFault[]): string[] {
  const since = (at: number): string => `${((at - death.at) / 1_000).toFixed(1)} s`;
  const returnedAt = attempt.at(-1)?.storedAt ?? death.at;
  const facts: (readonly [at: number, text: string])[] = [
    [death.at, `${since(death.at)} ${death.name} died by ${death.by}`],
    ...attempt.map(({ seq, storedAt, event: { kind, actor, data } }): [number, string] => {
      const reason = 'reason' in data ? ` (${data.reason})` : '';
      return [storedAt, `${since(storedAt)} ${seq} ${kind}${reason} by ${actor.kind} ${actor.id}`];
    }),
    ...faults
      .filter(({ startedAt, endedAt }) => startedAt <= returnedAt && endedAt >= death.at)
      .filter(({ target }) => !BYSTANDERS.some((name) => target.startsWith(name)))
      .map(({ kind, target, startedAt, endedAt, failed }): [number, string] => {
        const until = endedAt - startedAt < 50 ? '' : ` to ${since(endedAt)}`;
        return [startedAt, `${since(startedAt)}${until} ${kind} ${target}${failed ? ' (not done)' : ''}`];
      }),
  ];
  return facts.sort(([one], [other]) => one - other).map(([, text]) => text);
}
