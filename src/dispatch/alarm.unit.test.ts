import { expect, it } from 'vitest';
import { TaskledgerError } from '../domain/errors.ts';
import { names } from '../log/subjects.ts';
import { silentLogger } from '../observe/log.ts';
import { Alarm } from './alarm.ts';

const NOW = Date.parse('2026-01-01T00:00:00.300Z');

function setup({ refuse = false } = {}) {
  const stored: { subject: string; at: string | undefined }[] = [];
  const alarm = new Alarm({
    nc: {} as never,
    names: names(''),
    group: 'default',
    logger: silentLogger,
    onRing: () => {},
    publisher: {
      async publish(subject, _data, headers) {
        if (refuse) throw new TaskledgerError('log_unavailable', { reason: 'gone' });
        stored.push({ subject, at: headers?.['Nats-Schedule'] });
        return { stream: 'TIMERS', seq: stored.length };
      },
    },
  });
  /** As the dispatcher calls it, with time for what it stores. */
  const set = async (dueAt: number, now: number): Promise<void> => {
    alarm.set(dueAt, now);
    await new Promise(setImmediate);
  };
  return { alarm, stored, set };
}

it('is one schedule for all that is due in the same second, set for its end', async () => {
  const { stored, set } = setup();
  for (const afterMs of [100, 300, 700]) await set(NOW + afterMs, NOW);
  expect(stored).toEqual([{ subject: 'timers.default', at: '@at 2026-01-01T00:00:01.000Z' }]);
});

it('moves when something is due before, and not for what is due after', async () => {
  const { stored, set } = setup();
  await set(NOW + 60_000, NOW);
  await set(NOW + 5_000, NOW);
  await set(NOW + 90_000, NOW);
  expect(stored.map(({ at }) => at)).toEqual([
    '@at 2026-01-01T00:01:01.000Z',
    '@at 2026-01-01T00:00:06.000Z',
  ]);
});

it('is not set when nothing will be due', async () => {
  const { stored, set } = setup();
  await set(Number.POSITIVE_INFINITY, NOW);
  expect(stored).toEqual([]);
});

it('is set again for the next due time when it did not ring, and says that it was missed', async () => {
  const { alarm, stored, set } = setup();
  await set(NOW + 1_000, NOW);
  await set(NOW + 9_000, NOW + 2_500);
  expect(stored).toHaveLength(1);
  await set(NOW + 9_000, NOW + 3_000);
  expect(stored.map(({ at }) => at)).toEqual([
    '@at 2026-01-01T00:00:02.000Z',
    '@at 2026-01-01T00:00:10.000Z',
  ]);
  expect(alarm.stats()).toMatchObject({ set: 2, missed: 1 });
});

it('is tried again when it could not be stored', async () => {
  const { alarm, set } = setup({ refuse: true });
  await set(NOW + 5_000, NOW);
  await set(NOW + 5_000, NOW + 100);
  expect(alarm.stats()).toMatchObject({ set: 0, failed: 2 });
});
