import { afterAll, expect, test } from 'vitest';
import { drainOnce } from '../../src/worker/testing.ts';
import { openWorkerRig, TYPE } from '../support/worker-rig.ts';

const rig = await openWorkerRig(import.meta.url);
afterAll(() => rig.stop());

test('drainOnce runs what is queued, says what it did, and leaves nothing behind', async () => {
  const ids = await Promise.all(Array.from({ length: 30 }, (_, n) => rig.enqueue({ payload: n })));
  const stats = await drainOnce({
    ...rig.options,
    types: {
      [TYPE]: ({ payload }) => {
        if (payload === 13) throw new Error('unlucky');
        return payload;
      },
    },
  });
  expect(stats).toMatchObject({ completed: 29, failed: 1, running: 0 });
  for (const [n, id] of ids.entries())
    expect((await rig.event(id, n === 13 ? 'FAILED' : 'COMPLETED')).attempt).toBe(1);
});
