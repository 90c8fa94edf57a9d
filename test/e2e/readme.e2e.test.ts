import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureKeys } from '../../deploy/dev/keys.ts';
import { createApi } from '../../src/cli/api.ts';
import { loadConfig } from '../../src/platform/config.ts';
import { cli } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import { type NodeProcess, startNodeProcess } from '../support/node-process.ts';
import { blocks, configurationTable, README, routesTable, section } from '../support/readme.ts';
import { createTestDatabase, type TestDatabase, testNamespace, testNatsUrl } from '../support/servers.ts';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const readme = await readFile(README, 'utf8');

let database: TestDatabase;
let folder: string;
let url: string;
let key: string;
const processes: NodeProcess[] = [];

beforeAll(async () => {
  database = await createTestDatabase(import.meta.url);
  // Below the project, so that the snippets find their packages.
  await mkdir(join(ROOT, '.taskledger'), { recursive: true });
  folder = await mkdtemp(join(ROOT, '.taskledger', 'readme-'));
  const env = environment();
  ({ demo: key } = await ensureKeys(loadConfig(env), folder));
  const program = startNodeProcess('src/main.ts', ['all'], env);
  processes.push(program);
  url = String((await program.logged('HTTP API listens')).url);
});

afterAll(async () => {
  for (const running of processes.reverse()) await running.stop();
  await rm(folder, { recursive: true, force: true });
  await database.drop();
});

const environment = () => ({
  NATS_URL: testNatsUrl(),
  DATABASE_URL: database.url,
  TASKLEDGER_PREFIX: testNamespace(import.meta.url),
  TASKLEDGER_HTTP_PORT: '0',
});

describe('the README', () => {
  test('shows a worker and a submitter that work as they stand', async () => {
    const files = blocks(readme, 'ts').map((code) => ({
      name: /^\/\/ (\S+\.ts)/.exec(code)?.[1] ?? '',
      code,
    }));
    expect(files.map(({ name }) => name)).toEqual(['resize.ts', 'worker.ts', 'submit.ts']);
    for (const { name, code } of files) await writeFile(join(folder, name), atHome(code));
    const worker = startNodeProcess(join(folder, 'worker.ts'), [], environment());
    processes.push(worker);
    await worker.logged('worker started');

    const { stdout } = await run(process.execPath, ['--import', 'tsx', join(folder, 'submit.ts')]);
    const [, id] = /^(\S+) false$/m.exec(stdout) ?? [];
    expect(id).toBeDefined();

    const api = createApi({ url, key });
    const done = await eventually(async () => {
      const { task } = await api.task(String(id));
      expect(task.status).toBe('COMPLETED');
      return task;
    });
    expect(done.result).toMatchObject({ width: 640 });
  });

  test('shows requests that are answered', async () => {
    const [, requests = ''] = [...readme.matchAll(/## Over HTTP\n+```sh\n(.*?)```/gs)][0] ?? [];
    const commands = requests.replaceAll('\\\n', ' ').trim().split('\n');
    expect(commands).toHaveLength(3);
    for (const command of commands) {
      const { stdout } = await run('sh', ['-c', command]);
      expect(JSON.parse(stdout), command).not.toHaveProperty('error');
    }
  });

  test('shows commands that exist', async () => {
    const named = [...readme.matchAll(/(?:^|`)(?:npx )?taskledger ([a-z]+|--help)(?: ([a-z]+))?/gm)].map(
      ([, ...words]) => words.filter((word) => word !== undefined && word !== '--help').join(' '),
    );
    expect(named.length).toBeGreaterThan(6);
    for (const words of new Set(named)) {
      const [usage] = (await cli(`${words} --help`)).out.split('\n');
      expect(usage).toContain(`Usage: taskledger ${words}`.trimEnd());
    }
    // The same program, as the page says that it is run.
    expect((await run('npx', ['taskledger', '--help'])).stdout).toMatch(/^Usage: taskledger/);
  });

  test('lists every setting with its default', () => {
    expect(section(readme, 'configuration'), 'run npm run docs').toBe(configurationTable());
  });

  test('lists every route', async () => {
    const response = await fetch(`${url}/docs/json`);
    expect(section(readme, 'routes'), 'run npm run docs').toBe(
      routesTable((await response.json()) as Parameters<typeof routesTable>[0]),
    );
  });

  test('names only scripts that exist', async () => {
    const { scripts } = JSON.parse(await readFile(join(ROOT, 'package.json'), 'utf8')) as { scripts: object };
    const named = [...readme.matchAll(/npm (?:run ([a-z]+)|(start|test)\b)/g)].map(
      ([, run, short]) => run ?? short,
    );
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((script) => !Object.hasOwn(scripts, String(script)))).toEqual([]);
  });
});

/** The snippet as it would be in a project that has the package. */
const atHome = (code: string): string =>
  code.replaceAll("'taskledger'", `'${join(ROOT, 'src', 'index.ts')}'`);

const run = (program: string, args: readonly string[]) =>
  promisify(execFile)(program, args, {
    cwd: ROOT,
    env: { ...process.env, ...environment(), TASKLEDGER_URL: url, TASKLEDGER_KEY: key },
  });
