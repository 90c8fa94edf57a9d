import type { Names } from '../log/subjects.ts';
import { shortName } from './selection.ts';

/** What a stream or bucket lacks, or has again, when it is as it was at the time of a backup; by its full name. */
export function behindBy(stream: string, { prefix }: Pick<Names, 'prefix'>): string {
  const text = (BEHIND as Readonly<Record<string, string>>)[shortName(stream, prefix)];
  return text ?? 'what came since is gone';
}

/** By short name. */
export const BEHIND = {
  SUBMISSIONS:
    'submissions taken since come again: recognised within the hot window, older ones make tasks again',
  HISTORY: 'nothing that TASKS still has: HISTORY draws it by itself',
  TASKS: 'tasks submitted since are gone, and what ran since may run again',
  TIMERS: 'nothing: dispatchers set their timers again',
  tenants: 'tenants made since are unknown, limits changed since are as they were',
  types: 'types set since are unknown, policies and limits changed since are as they were',
  keys: 'keys made since are not valid, and KEYS REVOKED SINCE ARE VALID AGAIN: revoke them',
  controls: 'pauses begun since are over, pauses ended since hold again',
  schedules: 'schedules set since are unknown, those changed or removed since fire as they were',
  schedule_marks:
    'slots fired since are looked at again: recognised within the hot window, for older ones `missed` decides',
  operations:
    'operations begun since are forgotten, those ended since go on from where they were: abort them',
  retention: 'nothing: processes report it again',
  debounces: 'submissions of a key that was debounced since may make a task of their own',
} as const;
