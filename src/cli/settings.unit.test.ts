import { describe, expect, test } from 'vitest';
import { cli, NOW } from '../../test/support/command-line.ts';

test('keys and tenants are written where the API keeps them', async () => {
  const key = await cli('key create uploader --scope submit --tenant acme', [
    { status: 201, body: { id: '0123456789abcdef', key: 'tl_text' } },
  ]);
  expect(key.out).toContain('tl_text');
  expect(key.calls[0]?.body).toEqual({ name: 'uploader', scopes: ['submit'], tenant: 'acme' });
  const revoked = await cli('key revoke 0123456789abcdef', [{ status: 204 }]);
  expect(revoked).toMatchObject({ exit: 0, out: '0123456789abcdef  revoked\n' });
  const tenant = await cli('tenant create acme --name Acme', [
    { body: { name: 'acme', createdAt: '2026-01-01T00:00:00.000Z' } },
  ]);
  expect(tenant.calls[0]).toMatchObject({
    method: 'PUT',
    path: '/v1/tenants/acme',
    body: { displayName: 'Acme' },
  });
});

const acme = { name: 'acme', createdAt: '2026-01-01T00:00:00.000Z' };

test('type set patches what is given, and none goes back to the default', async () => {
  const answer = { type: 'mail', policy: { maxRetries: 5 }, submission: { ratePerSecond: 50, burst: 100 } };
  const { calls, out, exit } = await cli(
    'type set mail --max-retries 5 --max-backlog none --submit-rate 50 --submit-burst 100',
    [{ body: answer }],
  );
  expect(exit).toBe(0);
  expect(calls[0]).toMatchObject({
    method: 'PATCH',
    path: '/v1/types/mail',
    body: {
      maxBacklog: null,
      policy: { maxRetries: 5 },
      submission: { ratePerSecond: 50, burst: 100 },
    },
  });
  expect(out).toMatch(/Submission rate +50 a second, 100 at once/);
  expect((await cli('type show mail', [{ body: answer }])).out).toMatch(/Retries +5/);
});

test('tenant set patches the tenant, or what it has of one type', async () => {
  const whole = await cli('tenant set acme --weight 3 --rate 20 --submit-rate none --max-backlog 500', [
    { body: { ...acme, weight: 3, limits: { ratePerSecond: 20 }, maxBacklog: 500 } },
  ]);
  expect(whole.calls[0]).toMatchObject({
    method: 'PATCH',
    path: '/v1/tenants/acme',
    body: { weight: 3, maxBacklog: 500, limits: { ratePerSecond: 20 }, submission: null },
  });
  expect(whole.out).toMatch(/Weight +3/);
  expect(whole.out).toMatch(/Dispatch rate +20 a second/);
  const part = await cli('tenant set acme --type mail --concurrency none --submit-rate 5', [
    { body: { ...acme, types: { mail: { submission: { ratePerSecond: 5 } } } } },
  ]);
  expect(part.calls[0]?.body).toEqual({
    types: { mail: { concurrency: null, submission: { ratePerSecond: 5 } } },
  });
  expect(part.out).toMatch(/of mail +submission 5 a second/);
});

test('a mistake in what to set is one of usage, and nothing is sent', async () => {
  for (const args of [
    'tenant set acme',
    'tenant set acme --weight 0',
    'tenant set acme --weight much',
    'tenant set acme --type mail --max-backlog 5',
    'type set mail',
    'tenant pause acme',
    'cancellation start --type mail',
  ]) {
    const { exit, calls } = await cli(args);
    expect([args, exit, calls]).toEqual([args, 2, []]);
  }
});

test('a rate may be a fraction', async () => {
  for (const args of ['replay start --all --dry-run', 'cancellation start --reason x --dry-run']) {
    const { calls } = await cli(`${args} --rate 0.5`, [{ body: { dryRun: true, count: 0, sample: [] } }]);
    expect(calls[0]?.body).toMatchObject({ ratePerSecond: 0.5 });
    const { exit, err } = await cli(`${args} --rate 0`);
    expect([exit, err]).toEqual([2, expect.stringContaining('a number above 0 is expected')]);
  }
});

const pause = {
  tenant: null,
  type: 'mail',
  reason: 'provider is down',
  until: '2026-01-01T02:10:00.000Z',
  actor: 'key:1',
  at: '2026-01-01T00:00:00.000Z',
};

test('a type or a tenant is paused with a reason and for a time, and resumed', async () => {
  const paused = await cli("queue pause mail --reason 'provider is down' --until +2h --tenant acme", [
    { body: pause },
  ]);
  expect(paused.calls[0]).toMatchObject({
    method: 'POST',
    path: '/v1/queues/mail/pause?tenant=acme',
    body: { reason: 'provider is down', until: NOW + 7_200_000 },
  });
  expect(paused.out).toBe('type mail  paused until 2026-01-01 02:10:00Z (in 2 h): provider is down\n');
  const tenant = await cli('tenant pause acme --reason moving', [
    { body: { ...pause, tenant: 'acme', type: null, until: null, reason: 'moving' } },
  ]);
  expect(tenant.calls[0]).toMatchObject({ path: '/v1/tenants/acme/pause', body: { reason: 'moving' } });
  expect(tenant.out).toBe('tenant acme  paused: moving\n');
  const resumed = await cli('queue resume mail', [{ body: { resumed: true } }]);
  expect(resumed.calls[0]?.path).toBe('/v1/queues/mail/resume');
  expect(resumed.out).toBe('mail  resumed\n');
  expect((await cli('tenant resume acme', [{ body: { resumed: false } }])).out).toBe(
    'acme  was not paused\n',
  );
  expect((await cli('queue pauses', [{ body: { pauses: [pause] } }])).out).toMatchInlineSnapshot(`
    "PAUSED     REASON             UNTIL  BY          SINCE
    type mail  provider is down  in 2 h  key:1  10 min ago
    "
  `);
});

describe('cancellation', () => {
  const view = (state: string, cancelled: number) => ({
    id: 'c1',
    state,
    progress: { expected: 3, matched: cancelled, cancelled, requested: 0, skipped: 0, failed: 0 },
    createdAt: '2026-01-01T00:09:00.000Z',
  });

  test('by filter is followed until its end', async () => {
    const { calls, out, exit } = await cli(
      "cancellation start --type mail --status queued ingested --since 2h --reason 'wrong list' --wait",
      [{ status: 202, body: view('running', 0) }, { body: view('running', 2) }, { body: view('done', 3) }],
    );
    expect(exit).toBe(0);
    expect(calls[0]).toMatchObject({
      method: 'POST',
      path: '/v1/cancellations',
      body: {
        filter: { type: 'mail', status: ['QUEUED', 'INGESTED'], submittedFrom: NOW - 7_200_000 },
        reason: 'wrong list',
      },
    });
    expect(out.trim().split('\n')).toEqual([
      'c1  running: 0 cancelled, 0 requested, 0 skipped, 0 failed of 3',
      'c1  running: 2 cancelled, 0 requested, 0 skipped, 0 failed of 3',
      'c1  done: 3 cancelled, 0 requested, 0 skipped, 0 failed of 3',
    ]);
  });

  test('only counts with --dry-run', async () => {
    const { out } = await cli('cancellation start --type mail --reason x --dry-run', [
      { body: { dryRun: true, count: 0, atLeast: false, sample: [] } },
    ]);
    expect(out).toBe('No task matches.\n');
  });
});

test('tasks and queues are shown as of an instant or a sequence', async () => {
  const queues = await cli('queue list --at 2026-01-01T00:00:00Z', [{ body: { position: 1, queues: [] } }]);
  expect(queues.calls[0]?.path).toBe('/v1/queues?at=2026-01-01T00%3A00%3A00Z');
});

test('type list and key list', async () => {
  const types = [{ type: 'transcode', priority: 1, policy: { maxRetries: 5, timeoutMs: 90_000 } }];
  expect((await cli('type list', [{ body: { types } }])).out).toMatchInlineSnapshot(`
    "TYPE       PRIORITY  RETRIES  TIMEOUT  BACKLOG  BACKOFF
    transcode         1        5    1 min  default  default
    "
  `);
  const keys = [
    {
      id: '0123456789abcdef',
      tenant: 'acme',
      scopes: ['submit', 'read'],
      name: 'uploader',
      createdAt: '2025-12-31T00:00:00.000Z',
      revokedAt: null,
    },
  ];
  expect((await cli('key list', [{ body: { keys } }])).out).toMatchInlineSnapshot(`
    "KEY               TENANT  NAME      SCOPES       CREATED  STATE
    0123456789abcdef  acme    uploader  submit,read  1 d ago  valid
    "
  `);
});
