import { describe, expect, test } from 'vitest';
import { cli, refusal } from '../../test/support/command-line.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';

describe('schedule', () => {
  const nightly = {
    tenant: 'acme',
    name: 'nightly',
    type: 'report',
    payload: { of: 'sales' },
    cron: '30 2 * * *',
    timeZone: 'Europe/Berlin',
    overlap: 'skip',
    missed: 'latest',
    version: 3,
    changedAt: '2026-01-01T00:00:00.000Z',
    changedBy: { kind: 'key', id: 'ada' },
    nextAt: '2026-01-01T01:30:00.000Z',
  };

  test('put sends the definition and shows what became of it', async () => {
    const { exit, out, calls } = await cli(
      'schedule put nightly report \'{"of":"sales"}\' --cron \'30 2 * * *\' --zone Europe/Berlin --overlap skip',
      [{ status: 201, body: nightly }],
    );
    expect(exit).toBe(0);
    expect(calls).toMatchObject([
      {
        method: 'PUT',
        path: '/v1/schedules/nightly',
        body: {
          type: 'report',
          payload: { of: 'sales' },
          cron: '30 2 * * *',
          timeZone: 'Europe/Berlin',
          overlap: 'skip',
        },
      },
    ]);
    expect(out).toMatch(/^Timing +30 2 \* \* \* \(Europe\/Berlin\)$/m);
    expect(out).toMatch(/^Next +2026-01-01 01:30:00Z \(in 1 h\)$/m);
  });

  test('list says what comes next, or why nothing does', async () => {
    const paused = {
      ...nightly,
      name: 'weekly',
      nextAt: null,
      paused: { at: nightly.changedAt, by: { kind: 'key', id: 'ada' } },
    };
    const { out } = await cli('schedule list', [{ body: { schedules: [nightly, paused] } }]);
    expect(out).toMatch(/^acme +nightly +report +30 2 \* \* \* +Europe\/Berlin +in 1 h$/m);
    expect(out).toMatch(/^acme +weekly .* paused$/m);
  });

  test.each([
    ['schedule get nightly', 'GET', '/v1/schedules/nightly'],
    ["schedule pause nightly --reason 'month end'", 'POST', '/v1/schedules/nightly/pause'],
    ['schedule resume nightly', 'POST', '/v1/schedules/nightly/resume'],
    ['schedule get nightly --tenant zeta', 'GET', '/v1/schedules/nightly?tenant=zeta'],
  ])('%s', async (args, method, path) => {
    const { exit, out, calls } = await cli(args, [{ body: nightly }]);
    expect(exit).toBe(0);
    expect(calls).toMatchObject([{ method, path }]);
    expect(out).toContain('nightly');
  });

  test('delete, run and next', async () => {
    expect(await cli('schedule delete nightly', [{ status: 204 }])).toMatchObject({
      exit: 0,
      out: 'nightly  deleted\n',
    });
    const submitted = { id: ID, status: 'INGESTED', seq: 7, replayed: false };
    expect((await cli('schedule run nightly', [{ status: 201, body: submitted }])).out).toBe(
      `${ID}  INGESTED\n`,
    );
    const slots = [{ at: '2026-01-01T01:30:00.000Z', local: '2026-01-01T02:30:00.000+01:00' }];
    const { out, calls } = await cli('schedule next nightly --count 1', [{ body: { slots } }]);
    expect(calls[0]?.path).toBe('/v1/schedules/nightly/next?count=1');
    expect(out).toContain('2026-01-01T02:30:00.000+01:00');
  });

  test('that does not exist is refused', async () => {
    const { exit, err } = await cli('schedule get absent', [refusal(404, 'schedule_not_found')]);
    expect(exit).toBe(3);
    expect(err).toContain('schedule_not_found');
  });
});
