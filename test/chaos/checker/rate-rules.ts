import type { Recorded } from '../../../src/domain/events.ts';
import type { Alone, DispatchRate, IntakeRate, Violation } from './evidence.ts';
import { firstExcess, type Passage, type Stretch } from './excess.ts';
import { lineOf } from './lives.ts';

/**
 * `rates`: by the time of the log. Where the leader changed meanwhile, the one before may have had a burst under way. Work items
 * announced again are not queued anew. One violation a rate, its first.
 */
export const checkRates = (log: readonly Recorded[], rates: readonly DispatchRate[]): Violation[] =>
  rates.flatMap((rate) => {
    const { tenant, type, ratePerSecond, burst } = rate;
    const starts = log
      .filter(
        ({ event }) =>
          event.kind === 'QUEUED' &&
          event.from !== 'QUEUED' &&
          event.tenant === tenant &&
          (type === undefined || event.type === type),
      )
      .map((recorded) => ({ at: recorded.storedAt, recorded }))
      // Another server may lead meanwhile, whose clock is a little behind.
      .toSorted((one, other) => one.at - other.at);
    const found = firstExcess(starts, ratePerSecond, (stretch) =>
      stretch.excess <= burst ? burst : burst * (1 + changesOfLeader(stretch)),
    );
    return found === undefined ? [] : [violationOf('rates', `${tenant}/${type ?? 'any type'}`, rate, found)];
  });

const changesOfLeader = ({ passages }: Stretch): number =>
  passages.filter(({ recorded }, index) => {
    const before = passages[index - 1]?.recorded;
    return before !== undefined && before.event.actor.id !== recorded.event.actor.id;
  }).length;

/** What a process may hold of a rate in advance. */
const SHARE_MS = 100;
/** And what it has drawn for submissions that wait for a slow bucket, or for a clock that is behind: they come later than their tokens. */
const DRAWN_MS = 500;
/** What the gateway takes in has been stored before, and is not limited. */
const GATEWAY = 'gateway';

/**
 * `intake`: by the time that each submission was taken at, right after its token. A process alone allows the whole rate by
 * itself, and has a full bucket when that begins. One violation a rate, its first.
 */
export const checkIntake = (
  log: readonly Recorded[],
  { intakeRates, alone }: { readonly intakeRates: readonly IntakeRate[]; readonly alone: readonly Alone[] },
): Violation[] =>
  intakeRates.flatMap((rate) => {
    const { tenant, ratePerSecond, burst, processes } = rate;
    const taken = log
      .filter((recorded) => recorded.event.tenant === tenant && costsToken(recorded))
      .map((recorded) => ({ at: recorded.event.at, recorded }))
      .toSorted((one, other) => one.at - other.at);
    const perProcess = Math.max(1, (ratePerSecond * SHARE_MS) / 1_000) + (ratePerSecond * DRAWN_MS) / 1_000;
    const shared = burst + processes * perProcess;
    const found = firstExcess(taken, ratePerSecond, ({ from, to }) =>
      alone.reduce((sum, { from: since, until }) => {
        const togetherMs = Math.min(to, until) - Math.max(from, since);
        return togetherMs < 0 ? sum : sum + burst + (togetherMs * ratePerSecond) / 1_000;
      }, shared),
    );
    return found === undefined ? [] : [violationOf('intake', tenant, rate, found)];
  });

const costsToken = ({ event }: Recorded): boolean =>
  (event.kind === 'INGESTED' || (event.kind === 'RESCHEDULED' && event.data.payload !== undefined)) &&
  // Slots of schedules are the dispatcher's.
  (event.actor.kind === 'key' || (event.actor.kind === 'intake' && event.actor.id !== GATEWAY));

function violationOf(
  rule: 'rates' | 'intake',
  scope: string,
  { ratePerSecond, burst }: { readonly ratePerSecond: number; readonly burst: number },
  { passages, from, to, excess }: Stretch,
): Violation {
  return {
    rule,
    message: `${passages.length} tasks of ${scope} in ${to - from} ms: ${excess.toFixed(1)} more than ${ratePerSecond} a second, and the burst is ${burst}`,
    witness: passages.map(({ recorded }: Passage) => lineOf(recorded)),
  };
}
