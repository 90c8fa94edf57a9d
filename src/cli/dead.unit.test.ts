import { describe, expect, test } from 'vitest';
import { cli, NOW, refusal, widest } from '../../test/support/command-line.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';
const OTHER = '01890a5d-ac96-774b-bcce-b302099a8058';
const REPLAY = '11890a5d-ac96-474b-bcce-b302099a8059';
const letter = {
  id: ID,
  tenant: 'acme',
  type: 'mail',
  state: 'open',
  reason: 'retries',
  fingerprint: '840f8d5cb9b88528',
  error: {
    name: 'Error',
    message: 'refused',
    stack: 'Error: refused\n    at send (mail.ts:7:3)\n    at \u001b[2Jrun',
  },
  worker: 'w1',
  workerVersion: null,
  attempt: 4,
  round: 1,
  firstFailedAt: '2026-01-01T00:05:00.000Z',
  deadAt: '2026-01-01T00:08:00.000Z',
  settledAt: null,
  settledBy: null,
  note: null,
};
const page = {
  position: 9,
  deadLetters: [letter, { ...letter, id: OTHER, tenant: 'zeta' }],
  nextCursor: null,
};
const replay = {
  id: REPLAY,
  tenant: null,
  state: 'running',
  note: null,
  edited: [],
  ratePerSecond: null,
  expected: 3,
  progress: { matched: 2, replayed: 2, skipped: 0, failed: 0, failures: [] },
  actor: { kind: 'key', id: 'k1' },
  changedBy: null,
  createdAt: '2026-01-01T00:09:00.000Z',
  updatedAt: '2026-01-01T00:09:10.000Z',
};

describe('dead letters', () => {
  test('are listed with their tenants, the open ones unless another state is asked for', async () => {
    const { out, calls } = await cli('dead list --type mail --from 2h', [{ body: page }], { columns: 140 });
    expect(out).toMatchInlineSnapshot(`
      "TENANT  TASK                                  TYPE  STATE  REASON   GROUP             ERROR                DIED
      acme    01890a5d-ac96-774b-bcce-b302099a8057  mail  open   retries  840f8d5cb9b88528  Error: refused  2 min ago
      zeta    01890a5d-ac96-774b-bcce-b302099a8058  mail  open   retries  840f8d5cb9b88528  Error: refused  2 min ago
      "
    `);
    await expect(cli('dead list --state all', [{ body: page }])).resolves.toMatchObject({
      calls: [{ path: '/v1/dead-letters?limit=20' }],
    });
    expect(calls.map(({ path }) => path)).toEqual([
      `/v1/dead-letters?type=mail&deadFrom=${NOW - 7_200_000}&state=open&limit=20`,
    ]);
  });

  test('of one tenant are listed without naming it', async () => {
    const { out } = await cli('dead list --tenant acme', [{ body: { ...page, deadLetters: [letter] } }]);
    expect(out).not.toContain('TENANT');
    expect(out).not.toContain('acme');
    const none = { ...page, deadLetters: [] };
    expect((await cli('dead list', [{ body: none }])).out).toBe('No open dead letter matches.\n');
  });

  test('are looked at by group, and by task with the stack, which cannot steer the terminal', async () => {
    const { calls } = await cli('dead groups --group 840f8d5cb9b88528', [
      { body: { groups: [], nextCursor: null } },
    ]);
    expect(calls[0]?.path).toBe('/v1/dead-letters/groups?fingerprint=840f8d5cb9b88528&limit=20');
    const { out } = await cli(`dead show ${ID}`, [{ body: { position: 9, deadLetter: letter } }]);
    expect(out.split('\n').slice(-3)).toEqual(['    at send (mail.ts:7:3)', '    at ·[2Jrun', '']);
  });

  test('want their tenant of an operator, who is told how to name it', async () => {
    const { err } = await cli(`dead discard ${ID} --reason spam`, [
      refusal(400, 'request_invalid', { field: 'tenant' }),
    ]);
    expect(err).toContain('next   Give --tenant <tenant>, or set TASKLEDGER_TENANT.\n');
  });
});

describe('a replay', () => {
  test('that is tried dry shows what would be replayed', async () => {
    const { out, err } = await cli('replay start --all --dry-run', [
      { body: { dryRun: true, count: 12, sample: page.deadLetters } },
    ]);
    expect(out).toContain('12 would be replayed, of which 2 are shown.\n');
    expect(err).toBe('');
  });

  test('goes on by itself, and says how to follow it to somebody who looks', async () => {
    const answers = [{ status: 202, body: replay }];
    const { err, out } = await cli('replay start --type mail --rate 5', answers);
    expect(err).toContain(`"replay get ${REPLAY} --wait"`);
    expect(out).toContain('Replay    11890a5d');
    expect((await cli('replay start --type mail', answers, { columns: Number.POSITIVE_INFINITY })).err).toBe(
      '',
    );
  });

  test('that is waited for is done only when its bar is full', async () => {
    const { out, exit } = await cli(`replay get ${REPLAY} --wait`, [
      { body: { ...replay, progress: { ...replay.progress, matched: 98 }, expected: 100 } },
      { body: { ...replay, state: 'done' } },
    ]);
    expect(out).toContain('[###################.]  running: 2 replayed, 0 skipped, 0 failed of 100\n');
    expect(exit).toBe(0);
  });

  test('is listed with its tenant', async () => {
    const { out } = await cli(
      'replay list',
      [{ body: { replays: [replay, { ...replay, tenant: 'acme' }] } }],
      {
        columns: 120,
      },
    );
    expect(out).toMatchInlineSnapshot(`
      "REPLAY                                TENANT  STATE    REPLAYED  SKIPPED  FAILED  OF  NOTE    STARTED
      11890a5d-ac96-474b-bcce-b302099a8059  (all)   running         2        0       0   3        1 min ago
      11890a5d-ac96-474b-bcce-b302099a8059  acme    running         2        0       0   3        1 min ago
      "
    `);
    expect(widest(out)).toBeLessThanOrEqual(120);
  });

  test('of nothing in particular, or of ids and a filter, is a mistake in usage', async () => {
    for (const args of ['replay start', `replay start ${ID} --type mail`]) {
      const { exit, calls } = await cli(args);
      expect([exit, calls]).toEqual([2, []]);
    }
  });
});
