import { describe, expect, expectTypeOf, test } from 'vitest';
import { cli, NOW, refusal } from '../../test/support/command-line.ts';
import type { EventView, QueueView, TaskView } from '../query/query.ts';
import type { EventAnswer, QueueAnswer, Task } from './answers.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';

const task: Task = {
  id: ID,
  tenant: 'acme',
  type: 'transcode',
  status: 'COMPLETED',
  priority: 2,
  round: 1,
  attempt: 2,
  cancelRequested: false,
  worker: 'w1',
  payload: { clip: 'clips/0001.mp4', width: 640, note: 'a payload that is longer than the terminal is wide' },
  result: { frames: 250 },
  error: { name: 'Error', message: 'codec missing' },
  deadLetterReason: null,
  rejections: null,
  submittedAt: '2026-01-01T00:07:00.000Z',
  dueAt: null,
  deadlineAt: null,
  startedAt: '2026-01-01T00:09:10.000Z',
  finishedAt: '2026-01-01T00:09:14.200Z',
  seq: 60,
};
const event = (seq: number, kind: EventAnswer['kind'], ms: number, data: object = {}, attempt = 1) => ({
  seq,
  kind,
  attempt,
  storedAt: new Date(Date.parse(task.submittedAt) + ms).toISOString(),
  actor: { kind: 'worker', id: 'w1' },
  data,
});
const events = [
  event(10, 'INGESTED', 0, { payload: task.payload }, 0),
  event(20, 'QUEUED', 4, {}, 0),
  event(30, 'CLAIMED', 9),
  event(40, 'PROCESSING', 9),
  event(50, 'FAILED', 1_250, {
    error: { name: 'Error', message: 'codec missing\u001b[2J' },
    next: { retryInMs: 1_000 },
  }),
  event(60, 'COMPLETED', 134_200, { result: task.result }, 2),
];

describe('task submit', () => {
  const submitted = { id: ID, status: 'INGESTED', seq: 10, replayed: false };

  test('sends what was given and prints the id', async () => {
    const { exit, out, calls } = await cli(
      `task submit transcode '{"clip":1}' --id k1 --priority 1 --run-at +5m --max-retries 0 --timeout 30s --tenant acme`,
      [{ status: 201, body: submitted }],
    );
    expect(out).toBe(`${ID}  INGESTED\n`);
    expect(exit).toBe(0);
    expect(calls).toEqual([
      {
        method: 'POST',
        path: '/v1/tasks',
        authorization: 'Bearer tl_1_secret',
        body: {
          type: 'transcode',
          payload: { clip: 1 },
          idempotencyKey: 'k1',
          priority: 1,
          runAt: NOW + 300_000,
          tenant: 'acme',
          policy: { maxRetries: 0, timeoutMs: 30_000 },
        },
      },
    ]);
  });

  test('says when it was a repeat', async () => {
    const { out } = await cli('task submit transcode', [{ body: { ...submitted, replayed: true } }]);
    expect(out).toBe(`${ID}  INGESTED (a repeat)\n`);
  });

  test('reads the payload from standard input or a file', async () => {
    const answers = [{ status: 201, body: submitted }];
    const piped = await cli('task submit t -', answers, { stdin: async () => '[1]' });
    expect(piped.calls[0]?.body).toMatchObject({ payload: [1] });
    const filed = await cli('task submit t @clip.json', answers, { readFile: async () => '"x"' });
    expect(filed.calls[0]?.body).toMatchObject({ payload: 'x' });
  });

  test('with --wait reads its own write, waits for the end, and exits with 1 unless it is COMPLETED', async () => {
    const running = { body: { position: 40, task: { ...task, status: 'PROCESSING' } } };
    const behind = refusal(504, 'position_not_reached');
    const done = await cli('task submit t --wait', [
      { body: submitted },
      behind,
      running,
      { body: { position: 60, task } },
    ]);
    expect(done.exit).toBe(0);
    expect(done.calls.map(({ path }) => path)).toEqual([
      '/v1/tasks',
      ...Array(3).fill(`/v1/tasks/${ID}?wait=10`),
    ]);
    const dead = await cli('task submit t --wait', [
      { body: submitted },
      { body: { position: 60, task: { ...task, status: 'DEAD_LETTER', deadLetterReason: 'retries' } } },
    ]);
    expect(dead.exit).toBe(1);
  });
});

describe('output at 80 columns', () => {
  test('task get', async () => {
    const { out } = await cli(`task get ${ID}`, [{ body: { position: 60, task } }]);
    expect(out).toMatchInlineSnapshot(`
      "Task        01890a5d-ac96-774b-bcce-b302099a8057
      Status      COMPLETED
      Type        transcode
      Tenant      acme
      Priority    2
      Attempt     2
      Worker      w1
      Submitted   2026-01-01 00:07:00Z (3 min ago)
      Started     2026-01-01 00:09:10Z (50 s ago)
      Finished    2026-01-01 00:09:14Z (45 s ago), took 4.2 s
      Payload     {"clip":"clips/0001.mp4","width":640,"note":"a payload that is long…
      Result      {"frames":250}
      Last error  Error: codec missing
      "
    `);
    expect(widest(out)).toBeLessThanOrEqual(80);
  });

  test('task list', async () => {
    const tasks = [task, { ...task, type: 'a-type-with-a-name-that-is-far-too-long', status: 'DEAD_LETTER' }];
    const { out, calls } = await cli('task list --status completed dead_letter --type transcode', [
      { body: { position: 60, tasks, nextCursor: 'abc' } },
    ]);
    expect(out).toMatchInlineSnapshot(`
      "TASK                                  TYPE       STATUS       ATTEMPT  SUBMITTED
      01890a5d-ac96-774b-bcce-b302099a8057  transcode  COMPLETED          2  3 min ago
      01890a5d-ac96-774b-bcce-b302099a8057  a-type-w…  DEAD_LETTER        2  3 min ago
      More: --cursor abc
      "
    `);
    expect(widest(out)).toBeLessThanOrEqual(80);
    expect(calls[0]?.path).toBe('/v1/tasks?type=transcode&limit=20&status=COMPLETED%2CDEAD_LETTER');
  });

  test('task events, over all pages', async () => {
    const { out, calls } = await cli(`task events ${ID}`, [
      { body: { position: 60, events: events.slice(0, 3), nextCursor: 'c2' } },
      { body: { position: 60, events: events.slice(3), nextCursor: null } },
    ]);
    expect(out).toMatchInlineSnapshot(`
      "   +0 ms  INGESTED               w1  {"clip":"clips/0001.mp4","width":640,"note…
         +4 ms  QUEUED                 w1
         +9 ms  CLAIMED           #1   w1
         +9 ms  PROCESSING        #1   w1
        +1.3 s  FAILED            #1   w1  Error: codec missing·[2J (retry in 1.0 s)
        +2 min  COMPLETED         #2   w1  {"frames":250}
      "
    `);
    expect(widest(out)).toBeLessThanOrEqual(80);
    expect(calls.at(-1)?.path).toBe(`/v1/tasks/${ID}/events?cursor=c2&limit=200`);
  });

  test('queue list', async () => {
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

  test('the help of every command', async () => {
    for (const noun of [
      '',
      'task',
      'task submit',
      'task list',
      'queue',
      'type',
      'type set',
      'key',
      'tenant',
    ]) {
      const { out, exit } = await cli(`${noun} --help`);
      expect(exit).toBe(0);
      expect(widest(out)).toBeLessThanOrEqual(80);
    }
    expect((await cli('--help')).out).toMatchInlineSnapshot(`
      "Usage: taskledger [options] [command]

      Submit background tasks, look at them, run the installation

      Options:
        --url <url>              Address of the API; http://127.0.0.1:8080 when absent
                                 (TASKLEDGER_URL)
        --key <key>              API key (TASKLEDGER_KEY)
        --tenant <tenant>        For operators' keys: the tenant to act for
                                 (TASKLEDGER_TENANT)
        --json                   Print what the API answered, as JSON
        -h, --help               display help for command

      Commands:
        task                     Submit tasks, look at them, cancel them
        dead                     Look into the dead-letter queues
        replay                   Give tasks that died another round of attempts
        cancellation             Cancel all tasks that a filter finds
        queue                    How many tasks there are, and what holds them up
        worker                   Who runs tasks
        schedule                 Recurring tasks: one for each slot of a schedule
        type                     Settings of task types
        key                      API keys
        tenant                   Tenants (with an operator's key)
        projection               Read models: status, rebuild, verify (for operators)
        backup [options] <dir>   Write the streams to a folder; the installation may
                                 be at work
        restore [options] <dir>  Make the streams of a backup, on servers without
                                 them, while nothing runs
        help [command]           display help for command

      Exit codes: 0 done, 1 the awaited task did not complete, 2 usage,
      3 refused by the server, 4 the server cannot be reached.
      "
    `);
  });
});

test('task cancel says whether it is done or asked for', async () => {
  const { out, calls } = await cli(`task cancel ${ID} --reason 'wrong clip'`, [
    { body: { id: ID, event: 'CANCEL_REQUESTED', status: 'PROCESSING', seq: 70 } },
  ]);
  expect(out).toBe(`${ID}  CANCEL_REQUESTED\n`);
  expect(calls[0]).toMatchObject({ path: `/v1/tasks/${ID}/cancel`, body: { reason: 'wrong clip' } });
});

test('task why prints the sentence', async () => {
  const { out, calls } = await cli(`task why ${ID}`, [
    { body: { sentence: 'Task waits (INGESTED): it is due later.', facts: [{ kind: 'due_later' }] } },
  ]);
  expect(out).toBe('Task waits (INGESTED): it is due later.\n');
  expect(calls[0]?.path).toBe(`/v1/tasks/${ID}/why`);
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

test('task reschedule changes priority and time', async () => {
  const answer = { body: { id: ID, status: 'INGESTED', priority: 1, dueAt: null, seq: 70 } };
  const first = await cli(`task reschedule ${ID} --priority 1 --now`, [answer]);
  expect(first.out).toBe(`${ID}  priority 1, as soon as its turn comes\n`);
  expect(first.calls[0]).toMatchObject({
    method: 'PATCH',
    path: `/v1/tasks/${ID}`,
    body: { priority: 1, runAt: null },
  });
  const later = await cli(`task reschedule ${ID} --run-at +5m`, [answer]);
  expect(later.calls[0]?.body).toEqual({ runAt: NOW + 300_000 });
  expect((await cli(`task reschedule ${ID} --run-at +5m --now`)).exit).toBe(2);
});

describe('--json', () => {
  test('prints what the API answered', async () => {
    const body = { position: 60, task };
    const { out } = await cli(`task get ${ID} --json`, [{ body }]);
    expect(JSON.parse(out)).toEqual(body);
  });

  test('prints errors as JSON, on standard error', async () => {
    const { out, err } = await cli(`--json task get ${ID}`, [refusal(404, 'task_not_found')]);
    expect(out).toBe('');
    expect(JSON.parse(err)).toMatchObject({ error: { code: 'task_not_found', fix: 'Do otherwise.' } });
  });
});

describe('the exit code', () => {
  test.each([
    ['an unknown command', 'task explode'],
    ['a missing argument', 'task get'],
    ['an unknown option', 'task list --colour red'],
    ['a priority that is no number', 'task submit t --priority high'],
    ['a time that is no duration', 'task submit t --run-at +soon'],
    ['a payload that is not JSON', 'task submit t {clip}'],
    ['a payload file that does not exist', 'task submit t @missing.json'],
    ['an address that is no URL', 'task list --url nowhere'],
  ])('is 2 for %s, and nothing is sent', async (_, args) => {
    const { exit, err, calls } = await cli(args);
    expect(exit).toBe(2);
    expect(err).toMatch(/^error: /);
    expect(calls).toEqual([]);
  });

  test('is 2 without a key', async () => {
    const { exit, err } = await cli('queue list', [], { env: {} });
    expect(exit).toBe(2);
    expect(err).toContain('TASKLEDGER_KEY');
  });

  test('is 3 for a refusal, which is printed with its code, its cause and the next step', async () => {
    const { exit, err } = await cli('task submit T', [
      refusal(400, 'name_invalid', { field: 'type', reasons: [{ message: 'one' }, { message: 'two' }] }),
    ]);
    expect(exit).toBe(3);
    expect(err).toMatchInlineSnapshot(`
      "error   name_invalid: It is so
      field   type
      reason  one
      reason  two
      next    Do otherwise.
      doc     http://127.0.0.1:8080/errors/name_invalid
      "
    `);
  });

  test('is 4 when nobody answers', async () => {
    const refused = Object.assign(new TypeError('fetch failed'), { cause: { code: 'ECONNREFUSED' } });
    const { exit, err } = await cli('queue list --url http://127.0.0.1:1', [], {
      fetch: async () => Promise.reject(refused),
    });
    expect(exit).toBe(4);
    expect(err).toMatchInlineSnapshot(`
      "error  api_unreachable: No Taskledger answers at http://127.0.0.1:1: ECONNREFUSED
      next   Start it with "npm start", or give its address with --url or TASKLEDGER_URL.
      "
    `);
  });

  test('is 4 when something answers that is no Taskledger', async () => {
    const { exit, err } = await cli('queue list', [], {
      fetch: async () => new Response('<html>', { status: 200 }),
    });
    expect(exit).toBe(4);
    expect(err).toContain('answer_unexpected');
  });
});

test('the shapes that a client expects are those that the queries give', () => {
  expectTypeOf<TaskView>().toExtend<Task>();
  expectTypeOf<QueueView['counts']>().toExtend<QueueAnswer['counts']>();
  expectTypeOf<Omit<EventView, 'data' | 'kind'>>().toExtend<Omit<EventAnswer, 'data' | 'kind'>>();
});

const widest = (text: string): number => Math.max(...text.split('\n').map((line) => line.length));
