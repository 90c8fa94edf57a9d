import { describe, expect, test } from 'vitest';
import { cli, NOW } from '../../test/support/command-line.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const submittedAt = '2026-01-01T00:07:00.000Z';

describe('projection', () => {
  const job = {
    id: ID,
    kind: 'verify',
    projections: ['tasks'],
    schema: 'verify_tasks',
    state: 'running',
    phase: 'reading',
    position: 250,
    target: 1_000,
    eventsPerSecond: 150,
    report: null,
    error: null,
    requestedAt: submittedAt,
    finishedAt: null,
  };
  const table = { table: 'tasks', rows: 9, missing: 0, surplus: 0, changed: 0, fromSeq: null, sample: [] };
  const done = (tables: readonly object[]) => ({
    ...job,
    state: 'done',
    finishedAt: submittedAt,
    report: { position: 1_000, seconds: 2.5, poisoned: 0, tables },
  });

  test('verify follows the job with a bar and says what it found', async () => {
    const { exit, out, err, calls } = await cli('projection verify tasks', [
      { status: 202, body: job },
      { body: done([table]) },
    ]);
    expect(err).toContain('reading [########......................] 25 %  250 of 1000, 150/s, 5 s left');
    expect(err).toContain(`come back to it with: projection watch ${ID}\n`);
    expect(out).toContain('tasks: 9 rows, no difference\n');
    expect(exit).toBe(0);
    expect(calls.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /v1/projections/tasks/verify',
      `GET /v1/projections/jobs/${ID}`,
    ]);
  });

  test('verify fails when rows differ, and names them and the event', async () => {
    const sample = [
      { key: { id: ID }, columns: ['worker'], live: { worker: 'x' }, rebuilt: { worker: 'w1' } },
    ];
    const { exit, out } = await cli('projection verify', [
      { status: 202, body: done([{ ...table, changed: 1, fromSeq: 17, sample }]) },
    ]);
    expect(out).toContain('tasks: 9 rows; 0 missing, 0 surplus, 1 changed, from event 17 on\n');
    expect(out).toContain(`  {"id":"${ID}"}: worker\n`);
    expect(exit).toBe(1);
  });

  test('rebuild --until goes into a schema of its own, and only there', async () => {
    const { calls } = await cli('projection rebuild --until 437 --into as_of --no-wait', [
      { status: 202, body: job },
    ]);
    expect(calls).toMatchObject([
      { method: 'POST', path: '/v1/projections/build', body: { schema: 'as_of', until: '437' } },
    ]);
    expect((await cli('projection rebuild --until 437')).exit).toBe(2);
    const anHourAgo = await cli('projection rebuild --until 1h --into as_of --no-wait', [
      { status: 202, body: job },
    ]);
    expect(anHourAgo.calls).toMatchObject([{ body: { until: NOW - 3_600_000 } }]);
  });
});
