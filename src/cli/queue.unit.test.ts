import { expect, expectTypeOf, test } from 'vitest';
import { cli, NOW, widest } from '../../test/support/command-line.ts';
import type { QueueView } from '../query/query.ts';
import type { QueueAnswer } from './answers.ts';

test('queue list at 80 columns', async () => {
  const queue = (type: string, full: boolean) => ({
    tenant: 'acme',
    type,
    counts: { INGESTED: 1_200, FAILED: 3, PROCESSING: 8, CLAIMED: 1, COMPLETED: 120_500, DEAD_LETTER: 2 },
    backlog: { waiting: 1_203, limit: 100_000, full },
    intake: full
      ? {
          state: 'closed',
          reasons: [{ code: 'backlog_full', sentence: 'Type thumbnail has 1203 tasks waiting.' }],
        }
      : { state: 'open', reasons: [] },
    pauses: [],
  });
  const { out } = await cli('queue list', [
    { body: { position: 60, queues: [queue('transcode', false), queue('thumbnail', true)] } },
  ]);
  expect(out).toMatchInlineSnapshot(`
    "TENANT  TYPE       WAITING  RUNNING  COMPLETED  DEAD  CANCELLED  INTAKE
    acme    transcode     1203        9     120500     2          0  open
    acme    thumbnail     1203        9     120500     2          0  closed
    Type thumbnail has 1203 tasks waiting.
    "
  `);
  expect(widest(out)).toBeLessThanOrEqual(80);
});

test('worker list shows slots and silence', async () => {
  const worker = { id: 'w1', types: ['mail'], slots: 4, running: 1, version: '1', degraded: null };
  const seenAt = new Date(NOW - 2_000).toISOString();
  const { out, calls } = await cli('worker list --type mail', [
    {
      body: {
        workers: [
          { ...worker, alive: true, seenAt },
          { ...worker, id: 'w2', alive: false, seenAt },
        ],
      },
    },
  ]);
  expect(calls[0]?.path).toBe('/v1/workers?type=mail');
  expect(out).toMatch(/w1 +mail +1\/4 +live/);
  expect(out).toMatch(/w2 +mail +1\/4 +silent/);
});

test('the counts that a client expects are those that the queries give', () => {
  expectTypeOf<QueueView['counts']>().toExtend<QueueAnswer['counts']>();
});
