import { expect, test } from 'vitest';
import { standingOf } from './standing.ts';

const well = { outage: undefined, stopped: {}, lag: 3 };

test('a projector that writes is well, however far it is behind', () => {
  expect(standingOf(well, undefined)).toEqual({ ok: true, detail: '3 events behind' });
});

test('a read model that an alarm has stopped is told of with the reason, though nothing is behind', () => {
  const standing = standingOf({ ...well, stopped: { audit: 'the log was lost' }, lag: 0 }, undefined);
  expect(standing).toEqual({
    ok: false,
    detail: 'audit stands still: the log was lost; 0 events behind',
  });
});

test('an outage is told of with its reason and the lag, and rather than what the start waits for', () => {
  expect(standingOf({ ...well, outage: 'disk full' }, 'not started')).toEqual({
    ok: false,
    detail: 'Postgres cannot be written: disk full; 3 events behind',
  });
  expect(standingOf(well, 'not started')).toEqual({ ok: false, detail: 'not started' });
});
