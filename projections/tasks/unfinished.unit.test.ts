import { expect, test } from 'vitest';
import { STATUSES } from '../../src/domain/events.ts';
import { TERMINAL } from '../../src/domain/task.ts';
import { OLDEST, QUIETEST } from './unfinished.ts';

test('every status that is not final is one of an unfinished task, and no other', () => {
  const wanted = STATUSES.filter((status) => !TERMINAL.has(status)).toSorted();
  for (const text of [OLDEST, QUIETEST])
    expect([...text.matchAll(/'([A-Z_]+)'/g)].map(([, status = '']) => status).toSorted()).toEqual(wanted);
});
