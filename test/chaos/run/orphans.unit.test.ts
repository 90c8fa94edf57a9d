import { describe, expect, test } from 'vitest';
import type { Recorded } from '../../../src/domain/events.ts';
import { claim, given, ingest, lose, queue, start } from '../../support/life.ts';
import type { DoneFault } from '../nemesis/nemesis.ts';
import type { Death } from '../stand/victim.ts';
import { orphansOf } from './orphans.ts';

/** One task whose attempt is claimed at 3 s by the incarnation `w-1` of `w`, and is lost at the given time. */
const lifeLostAt = (lostAt: number): Recorded[] =>
  given(ingest(), queue(), claim(), start(), lose()).events.map(({ seq, event }, index) =>
    event.kind === 'RETRY_CLAIMED'
      ? { seq, storedAt: lostAt, event: { ...event, data: { ...event.data, lostWorker: 'w-1' } } }
      : { seq, storedAt: (index + 1) * 1_000, event },
  );

const death = (at: number, name = 'w'): Death => ({ at, name, by: 'nemesis', how: 'SIGKILL' });
const fault = (target: string, startedAt: number, endedAt: number): DoneFault =>
  ({ kind: 'cut', target, atMs: 0, untilMs: 0, startedAt, endedAt }) as DoneFault;

describe('an attempt of a dead worker', () => {
  test('is away from the death to the event that says so', () => {
    expect(orphansOf(lifeLostAt(20_000), [death(5_000)], [])).toMatchObject([{ ms: 15_000 }]);
  });

  test('is none when its worker did not die while it ran', () => {
    const log = lifeLostAt(20_000);
    for (const other of [death(1_000), death(30_000), death(5_000, 'other')])
      expect(orphansOf(log, [other], [])).toEqual([]);
  });

  test('comes with what was hurt meanwhile, in order, and not with what it has nothing to do with', () => {
    const faults = [
      fault('w2~nats', 8_000, 9_000),
      fault('n1~peers', 4_000, 6_000),
      fault('n2~peers', 1_000, 2_000),
      fault('projector-1~nats', 7_000, 8_000),
    ];
    const [orphan] = orphansOf(lifeLostAt(20_000), [death(5_000)], faults);
    expect(orphan?.story.map((line) => line.replaceAll(/ \(.*| by .*/g, ''))).toEqual([
      '-2.0 s 30 CLAIMED',
      '-1.0 s 40 PROCESSING',
      '-1.0 s to 1.0 s cut n1~peers',
      '0.0 s w died',
      '3.0 s to 4.0 s cut w2~nats',
      '15.0 s 50 RETRY_CLAIMED',
    ]);
  });
});
