import { describe, expect, test } from 'vitest';
import { cli, refusal, widest } from '../../test/support/command-line.ts';
import { catalogue } from '../domain/errors.ts';
import { settings } from '../platform/config.ts';
import { ENVIRONMENT } from './connection.ts';

const ID = '01890a5d-ac96-774b-bcce-b302099a8057';

test('the help of every command', async () => {
  for (const noun of ['', 'task', 'task submit', 'task list', 'queue', 'type', 'type set', 'key', 'tenant']) {
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
    3 refused, 4 the server cannot be reached.
    "
  `);
});

describe('--json', () => {
  test('prints what the API answered', async () => {
    const body = { position: 60, task: { id: ID } };
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

describe('the next step that an error of the catalogue names', () => {
  const steps = Object.values(catalogue).map(({ fix }) => fix);

  test('is a command that there is', async () => {
    const commands = steps.flatMap((fix) => [...fix.matchAll(/taskledger (\w+) (\w+)/g)]);
    expect(commands).not.toEqual([]);
    for (const [, noun, verb] of commands) expect((await cli(`${noun} --help`)).out).toContain(`  ${verb} `);
  });

  test('is a setting that there is', () => {
    const known = [
      ...Object.values(settings).map(({ env }) => env),
      ...Object.values(ENVIRONMENT).map(({ name }) => name),
    ];
    const named = steps.flatMap((fix) => fix.match(/TASKLEDGER_\w+/g) ?? []);
    expect(named).not.toEqual([]);
    for (const setting of named) expect(known).toContain(setting);
  });
});
