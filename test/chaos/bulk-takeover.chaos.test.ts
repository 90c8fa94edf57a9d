import { afterAll, beforeAll, expect, test } from 'vitest';
import { DEMO_TENANT } from '../../deploy/dev/keys.ts';
import type { EventKind } from '../../src/domain/events.ts';
import { createWorker, type Worker } from '../../src/index.ts';
import { silentLogger } from '../../src/observe/log.ts';
import { stepId } from '../../src/operations/bulk-kind.ts';
import { eventually } from '../support/eventually.ts';
import { type Installation, startInstallation, TYPE } from '../support/installation.ts';
import { createTestDatabase, type TestDatabase, testNamespace, testNatsUrl } from '../support/servers.ts';

const TASKS = 500;
/** Ten seconds of work, in pages of 13. */
const PER_SECOND = 50;
/** Steps in the log when the process is killed: in the middle of a page, and far from the end. */
const KILLED_AFTER = 110;
const BRITTLE = 'brittle';

interface Bulk {
  readonly id: string;
  readonly state: string;
  readonly expected?: number | null;
  readonly progress: Readonly<Record<string, unknown>> & { readonly matched: number };
}

let database: TestDatabase;
let installation: Installation;
let worker: Worker;
let mended = false;

beforeAll(async () => {
  database = await createTestDatabase(import.meta.url);
  installation = await startInstallation(
    {
      NATS_URL: testNatsUrl(),
      DATABASE_URL: database.url,
      TASKLEDGER_PREFIX: testNamespace(import.meta.url),
      // Longer than a busy machine keeps a process waiting: who is killed leads until then.
      TASKLEDGER_LEADER_LEASE_MS: '5000',
    },
    ['dispatcher', 'projector', 'api'],
  );
  worker = createWorker({
    nats: testNatsUrl(),
    prefix: installation.config.prefix,
    concurrency: 20,
    logger: silentLogger,
    types: {
      [BRITTLE]() {
        if (!mended) throw new Error('not mended yet');
        return null;
      },
    },
  });
  await worker.start();
});
afterAll(async () => {
  await worker?.stop();
  await installation?.stop();
  await database?.drop();
});

async function post(path: string, body: object): Promise<Record<string, unknown>> {
  const { url, headers } = installation;
  const response = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  const answer = (await response.json()) as Record<string, unknown>;
  expect([response.status, answer['error']]).toEqual([expect.any(Number), undefined]);
  return answer;
}

async function submitMany(over: object): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < TASKS; n += 50) {
    const answers = await Promise.all(Array.from({ length: 50 }, () => installation.submit({ ...over })));
    ids.push(...answers.flatMap((answer) => (answer.kind === 'accepted' ? [answer.taskId] : [])));
  }
  expect(ids).toHaveLength(TASKS);
  return ids;
}

/** Begins an operation, kills the process that works on it in the middle, and resolves with it when it is done. */
async function survivesItsRunner(
  path: string,
  wish: object,
  { step, left }: { step: EventKind; left: () => Promise<unknown> },
): Promise<Bulk> {
  const runner = installation.roles.get('api');
  await eventually(() => runner?.lines.some((line) => /"key":"operations".*"leading"/.test(line)) ?? false);
  const survivor = await installation.restart('api');
  await eventually(async () => expect(await left()).toBe(TASKS), { timeoutMs: 60_000 });
  const { id } = (await post(path, { ...wish, ratePerSecond: PER_SECOND })) as unknown as Bulk;
  const seen = async () => (await installation.get(`${path}/${id}`)).body as unknown as Bulk;

  await eventually(() => installation.count(step) >= KILLED_AFTER, { timeoutMs: 60_000, intervalMs: 1 });
  expect(survivor.lines.join('\n')).not.toMatch(/"key":"operations".*"leading"/);
  expect(await runner?.stop('SIGKILL')).toBeNull();
  const atDeath = await seen();
  expect(atDeath.state).toBe('running');
  expect(atDeath.progress.matched).toBeGreaterThan(0);
  expect(atDeath.progress.matched).toBeLessThan(TASKS);

  return eventually(
    async () => {
      const bulk = await seen();
      return bulk.state === 'done' ? bulk : false;
    },
    { timeoutMs: 120_000, intervalMs: 200 },
  );
}

/** Every task has the operation's own step, and has moved this way no other time. */
function expectMovedOnce(bulk: Bulk, ids: readonly string[], step: EventKind): void {
  const moved = ids.map((taskId) =>
    (installation.book.get(taskId) ?? [])
      .filter(({ event }) => event.kind === step)
      .map(({ event }) => event.id),
  );
  expect(moved).toEqual(ids.map((taskId) => [stepId(bulk, { tenant: DEMO_TENANT, taskId })]));
}

test('a replay whose API process is killed goes on in another: each letter is replayed once, and counted once', async () => {
  const ids = await submitMany({ type: BRITTLE, policy: { maxRetries: 0 } });
  await eventually(() => installation.count('DEAD_LETTER') === TASKS, { timeoutMs: 60_000 });
  mended = true;
  const wish = { filter: { type: BRITTLE } };
  const bulk = await survivesItsRunner('/v1/replays', wish, {
    step: 'REPLAYED',
    left: async () => (await post('/v1/replays', { ...wish, dryRun: true }))['count'],
  });
  expect(bulk).toMatchObject({
    expected: TASKS,
    progress: { matched: TASKS, replayed: TASKS, skipped: 0, failed: 0 },
  });
  await eventually(() => installation.count('COMPLETED') === TASKS, { timeoutMs: 60_000 });
  expectMovedOnce(bulk, ids, 'REPLAYED');
});

test('a cancellation of many whose API process is killed goes on in another: each task is cancelled once, and counted once', async () => {
  const ids = await submitMany({ delayMs: 3_600_000 });
  const wish = { filter: { type: TYPE }, reason: 'recalled' };
  const bulk = await survivesItsRunner('/v1/cancellations', wish, {
    step: 'CANCELLED',
    left: async () => (await post('/v1/cancellations', { ...wish, dryRun: true }))['count'],
  });
  expect(bulk.progress).toEqual({
    expected: TASKS,
    matched: TASKS,
    cancelled: TASKS,
    requested: 0,
    skipped: 0,
    failed: 0,
  });
  await eventually(() => installation.count('CANCELLED') === TASKS);
  expectMovedOnce(bulk, ids, 'CANCELLED');
});
