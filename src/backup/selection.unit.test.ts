import { expect, test } from 'vitest';
import { names as namesOf } from '../log/subjects.ts';
import { streamsInOrder } from './backup.ts';
import { BEHIND } from './behind.ts';
import type { BackedUpStream } from './manifest.ts';
import { choose, shortName } from './selection.ts';

const names = namesOf('staging_');
const streams = streamsInOrder(names).map((name) => ({ name }) as BackedUpStream);
const chosen = (...only: string[]) => choose({ streams }, { names, dir: '/b', only }).map(({ name }) => name);

test('streams and buckets are asked for by what people call them, or by their full names', () => {
  expect(chosen('types', 'TASKS')).toEqual(['staging_TASKS', 'KV_staging_types']);
  expect(chosen('KV_staging_keys', 'staging_TIMERS')).toEqual(['staging_TIMERS', 'KV_staging_keys']);
});

test('TASKS is restored before HISTORY, however they are asked for and were taken', () => {
  expect(chosen('HISTORY', 'TASKS')).toEqual(['staging_TASKS', 'staging_HISTORY']);
  const all = choose({ streams }, { names, dir: '/b', only: undefined });
  expect(all).toHaveLength(streams.length);
  expect(all[0]?.name).toBe('staging_TASKS');
});

test('a name that the backup does not hold is refused with all that it holds', () => {
  expect(() => chosen('types', 'leaders')).toThrow('does not hold leaders');
});

test('of all that a backup can hold it is known what it is behind by', () => {
  const short = streamsInOrder(names).map((name) => shortName(name, names.prefix));
  expect(Object.keys(BEHIND).sort()).toEqual([...short].sort());
});
