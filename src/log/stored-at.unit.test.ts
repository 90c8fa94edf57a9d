import fc from 'fast-check';
import { expect, test } from 'vitest';
import { msOfNanos } from './stored-at.ts';

test('the time of an event is the same in its ack subject and in its time stamp, to the last nanosecond', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1_700_000_000_000, max: 2_000_000_000_000 }),
      fc.oneof(fc.integer({ min: 0, max: 999_999 }), fc.integer({ min: 999_800, max: 999_999 })),
      (ms, nanos) => {
        const fraction = String(nanos).padStart(6, '0');
        const stamp = new Date(ms).toISOString().replace('Z', `${fraction}Z`);
        expect(msOfNanos(`${ms}${fraction}`)).toBe(Date.parse(stamp));
        expect(msOfNanos(`${ms}${fraction}`)).toBe(ms);
      },
    ),
  );
});
