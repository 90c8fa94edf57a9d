import { describe, expect, expectTypeOf, test } from 'vitest';
import { cli, NOW, refusal, widest } from '../../test/support/command-line.ts';
import type { EventView } from '../query/query.ts';
import type { EventAnswer, Task } from './answers.ts';

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
  idempotencyKey: null,
  schedule: null,
  slotAt: null,
  submittedAt: '2026-01-01T00:07:00.000Z',
  runAt: null,
  dueAt: null,
  deadlineAt: null,
  claimedAt: '2026-01-01T00:09:10.000Z',
  startedAt: '2026-01-01T00:09:10.000Z',
  finishedAt: '2026-01-01T00:09:14.200Z',
  updatedAt: '2026-01-01T00:09:14.200Z',
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

  test('task list of one tenant, without naming it', async () => {
    const tasks = [task, { ...task, type: 'a-type-with-a-name-that-is-far-too-long', status: 'DEAD_LETTER' }];
    const { out, calls } = await cli(
      'task list --tenant acme --status completed dead_letter --type transcode',
      [{ body: { position: 60, tasks, nextCursor: 'abc' } }],
    );
    expect(out).toMatchInlineSnapshot(`
      "TASK                                  TYPE       STATUS       ATTEMPT  SUBMITTED
      01890a5d-ac96-774b-bcce-b302099a8057  transcode  COMPLETED          2  3 min ago
      01890a5d-ac96-774b-bcce-b302099a8057  a-type-w…  DEAD_LETTER        2  3 min ago
      More: --cursor abc
      "
    `);
    expect(widest(out)).toBeLessThanOrEqual(80);
    expect(calls[0]?.path).toBe(
      '/v1/tasks?tenant=acme&type=transcode&limit=20&status=COMPLETED%2CDEAD_LETTER',
    );
  });

  test('task list names the tenants unless one was asked for', async () => {
    const tasks = [task, { ...task, tenant: 'zeta' }];
    const page = { position: 60, tasks, nextCursor: null };
    const { out } = await cli('task list', [{ body: page }], { columns: 100 });
    expect(out).toMatchInlineSnapshot(`
      "TENANT  TASK                                  TYPE       STATUS     ATTEMPT  SUBMITTED
      acme    01890a5d-ac96-774b-bcce-b302099a8057  transcode  COMPLETED        2  3 min ago
      zeta    01890a5d-ac96-774b-bcce-b302099a8057  transcode  COMPLETED        2  3 min ago
      "
    `);
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

test('the events that a client expects are those that the queries give', () => {
  expectTypeOf<Omit<EventView, 'data' | 'kind'>>().toExtend<Omit<EventAnswer, 'data' | 'kind'>>();
});
