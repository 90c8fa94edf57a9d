import { spawn } from 'node:child_process';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import type { NatsConnection } from '@nats-io/transport-node';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createWorker, NotRetryable, type Worker } from '../../src/index.ts';
import { ensureStreams } from '../../src/log/streams.ts';
import { names as namesOf } from '../../src/log/subjects.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { openRegistry } from '../../src/registry/registry.ts';
import { programArgs } from '../support/built.ts';
import { eventually } from '../support/eventually.ts';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import {
  connectTestNats,
  createTestDatabase,
  type TestDatabase,
  testNamespace,
  testNatsUrl,
} from '../support/servers.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

let database: TestDatabase;
let nc: NatsConnection;
let program: NodeProcess;
let worker: Worker;
/** Where the installation is, for the command line: an operator's key that acts for acme. */
let operator: Record<string, string>;

beforeAll(async () => {
  [database, nc] = await Promise.all([createTestDatabase(import.meta.url), connectTestNats()]);
  const prefix = testNamespace(import.meta.url);
  const env = {
    NATS_URL: testNatsUrl(),
    DATABASE_URL: database.url,
    TASKLEDGER_PREFIX: prefix,
    TASKLEDGER_HTTP_PORT: '0',
  };
  program = startNodeProcess('src/main.ts', ['all'], env);
  const { url } = await program.logged('HTTP API listens');
  operator = {
    TASKLEDGER_URL: String(url),
    TASKLEDGER_KEY: await operatorKey(prefix),
    TASKLEDGER_TENANT: 'acme',
  };
  worker = createWorker({
    nats: testNatsUrl(),
    prefix,
    logger: silentLogger,
    types: {
      echo: ({ payload }) => payload,
      refuse: () => {
        throw new NotRetryable('never', { code: 'no_use' });
      },
    },
  });
  await worker.start();
  await taskledger('tenant create acme --name Acme');
});

afterAll(async () => {
  await worker?.stop();
  await program?.stop('SIGKILL');
  await nc?.close();
  await database?.drop();
});

async function operatorKey(prefix: string): Promise<string> {
  const config = loadConfig({ NATS_URL: testNatsUrl(), TASKLEDGER_PREFIX: prefix });
  const names = namesOf(prefix);
  await ensureStreams({ nc, names, config, logger: silentLogger });
  const registry = openRegistry({ nc, names, logger: silentLogger });
  await registry.start();
  try {
    return (await registry.keys.create({ tenant: '*', scopes: ['admin'], name: 'operator' })).key;
  } finally {
    await registry.stop();
  }
}

/** The real command in a process of its own. */
async function taskledger(
  line: string,
  { env = operator, input = '' }: { env?: Record<string, string>; input?: string } = {},
) {
  const child = spawn(process.execPath, [...programArgs('src/cli/main.ts'), ...line.split(' ')], {
    cwd: ROOT,
    env: { PATH: process.env['PATH'], ...env },
  });
  child.stdin.end(input);
  const closed = new Promise<number | null>((resolve) => child.once('close', resolve));
  const [out, err, exit] = await Promise.all([text(child.stdout), text(child.stderr), closed]);
  return { exit, out, err };
}

describe('a task from the command line', () => {
  test('is submitted, worked on, awaited and shown with its history', async () => {
    const done = await taskledger('task submit echo {"n":1} --id order-1 --wait');
    expect(done).toMatchObject({ exit: 0, err: '' });
    expect(done.out).toMatch(/^Status +COMPLETED$/m);
    expect(done.out).toMatch(/^Result +\{"n":1\}$/m);
    const id = /^Task +(\S+)$/m.exec(done.out)?.[1] ?? '';

    const repeat = await taskledger('task submit echo - --id order-1', { input: '{"n":1}' });
    expect(repeat.out).toBe(`${id}  INGESTED (a repeat)\n`);
    const events = await taskledger(`task events ${id}`);
    expect(events.out.match(/[A-Z_]{6,}/g)).toEqual([
      'INGESTED',
      'QUEUED',
      'CLAIMED',
      'PROCESSING',
      'COMPLETED',
    ]);
    const watched = await taskledger(`task watch ${id} --json`);
    expect(watched.exit).toBe(0);
    expect(watched.out.trim().split('\n')).toHaveLength(5);
  });

  test('is watched live, from its history to its end', async () => {
    const submitted = await taskledger('task submit echo --run-at +8s --json');
    const { id } = JSON.parse(submitted.out) as { id: string };
    await eventually(async () => expect((await taskledger(`task get ${id}`)).exit).toBe(0));
    const watched = await taskledger(`task watch ${id} --json`);
    expect(watched).toMatchObject({ exit: 0, err: '' });
    const kinds = watched.out
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as { kind: string }).kind);
    expect(kinds).toEqual(['INGESTED', 'QUEUED', 'CLAIMED', 'PROCESSING', 'COMPLETED']);
  });

  test('that fails for good makes --wait exit with 1 and says why', async () => {
    const { exit, out } = await taskledger('task submit refuse --wait');
    expect(exit).toBe(1);
    expect(out).toMatch(/^Status +DEAD_LETTER$/m);
    expect(out).toMatch(/^Last error +NotRetryable: never$/m);
  });

  test('that waits is cancelled at once, and found by its status', async () => {
    const submitted = await taskledger('task submit echo --run-at +1h --json');
    const { id, seq } = JSON.parse(submitted.out) as { id: string; seq: number };
    expect(seq).toBeGreaterThan(0);
    expect((await taskledger(`task cancel ${id} --reason test`)).out).toBe(`${id}  CANCELLED\n`);
    expect((await taskledger(`task get ${id} --wait`)).exit).toBe(1);
    const listed = await taskledger('task list --status cancelled --json');
    expect(JSON.parse(listed.out)).toMatchObject({ tasks: [{ id, status: 'CANCELLED' }] });
    expect((await taskledger('queue list --type echo')).out).toMatch(/^acme +echo /m);
  });
});

test('settings, tenants and keys are managed, and a revoked key is refused', async () => {
  expect((await taskledger('tenant list')).out).toMatch(/^acme +Acme/m);
  expect((await taskledger('type set echo --max-retries 0')).exit).toBe(0);
  expect((await taskledger('type list')).out).toMatch(/^echo +default +0 /m);

  const made = await taskledger('key create uploader --scope submit --json');
  const { id, key } = JSON.parse(made.out) as { id: string; key: string };
  const uploader = { env: { ...operator, TASKLEDGER_KEY: key } };
  expect((await taskledger('task submit echo', uploader)).exit).toBe(0);
  const forbidden = await taskledger('queue list', uploader);
  expect(forbidden.exit).toBe(3);
  expect(forbidden.err).toContain('scope_missing');

  expect((await taskledger(`key revoke ${id}`)).exit).toBe(0);
  const refused = await taskledger('task submit echo', uploader);
  expect(refused.exit).toBe(3);
  expect(refused.err).toMatch(/key_invalid.*next .*taskledger key create/s);
});

test('bad input is refused with the field and the next step, and nothing is printed as a result', async () => {
  const { exit, out, err } = await taskledger('task submit echo --run-at tomorrow');
  expect(exit).toBe(3);
  expect(out).toBe('');
  expect(err).toContain('run_at_invalid');
  expect(err).toMatch(/^field +runAt$/m);
});

test('an address where nobody listens is exit code 4', async () => {
  const { exit } = await taskledger('queue list', {
    env: { ...operator, TASKLEDGER_URL: 'http://127.0.0.1:9' },
  });
  expect(exit).toBe(4);
});
