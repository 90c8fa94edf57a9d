import type { Recorded } from '../../../src/domain/events.ts';
import type { PauseWindow, Violation } from './evidence.ts';
import { lineOf } from './lives.ts';

/** A pause reaches the leader by a watch on a bucket, which a fault may have to let reconnect first. */
export const REACHES_WITHIN_MS = 10_000;

/**
 * `pauses`: nothing that a pause covers is decided to be queued once the pause has had time to reach the leader. What was decided
 * before may be stored later: a network that was cut delivers it when it is whole again. Work items announced again are not queued anew.
 */
export function checkPauses(log: readonly Recorded[], pauses: readonly PauseWindow[]): Violation[] {
  const queued = log.filter(({ event }) => event.kind === 'QUEUED' && event.from !== 'QUEUED');
  return pauses.flatMap((pause) => {
    const broken = queued.filter((recorded) => isIn(pause, recorded));
    const [first] = broken;
    return first === undefined ? [] : [violationOf(pause, first, broken.length)];
  });
}

const isIn = ({ tenant, type, from, until }: PauseWindow, { event }: Recorded): boolean =>
  (tenant === undefined || event.tenant === tenant) &&
  (type === undefined || event.type === type) &&
  event.at > from + REACHES_WITHIN_MS &&
  event.at < until;

function violationOf({ tenant, type, from, until }: PauseWindow, first: Recorded, count: number): Violation {
  const scope = `${tenant ?? 'any tenant'}/${type ?? 'any type'}`;
  return {
    rule: 'pauses',
    message: `${count} tasks of ${scope} were queued while it was paused, the first ${first.event.at - from} ms after the answer`,
    witness: [
      `pause of ${scope} from ${new Date(from).toISOString()} until ${new Date(until).toISOString()}`,
      lineOf(first),
    ],
  };
}
